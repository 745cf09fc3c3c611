/* Reading bandwidth, measured the way STREAM does: static slices, first touch by the
 * thread that reads, arrays far larger than the caches, every pass timed as a whole.
 *
 * Large pages are asked for, as numpy does for its arrays: with small ones the figure would
 * be that of address translation.
 *
 * usage: stream_read THREADS BYTES PASSES   prints GB/s of each pass, one a line
 */
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#define HUGE_PAGE (2UL << 20)

/* One accumulator would wait for its own last addition: LANES of them let loads decide. */
#define LANES 32

static double read_all(const double *values, long n) {
    double sum = 0.0;
#pragma omp parallel reduction(+ : sum)
    {
        double lanes[LANES] = {0};
#pragma omp for schedule(static)
        for (long block = 0; block < n / LANES; block++)
            for (int lane = 0; lane < LANES; lane++) lanes[lane] += values[block * LANES + lane];
        for (int lane = 0; lane < LANES; lane++) sum += lanes[lane];
    }
    return sum;
}

int main(int argc, char **argv) {
    if (argc != 4) return 2;
    omp_set_num_threads(atoi(argv[1]));
    const long n = atol(argv[2]) / (long)sizeof(double);
    double *values = aligned_alloc(HUGE_PAGE, ((size_t)n * sizeof(double) / HUGE_PAGE + 1) * HUGE_PAGE);
    if (values == NULL) return 1;
#ifdef MADV_HUGEPAGE
    madvise(values, (size_t)n * sizeof(double), MADV_HUGEPAGE);
#endif
#pragma omp parallel for schedule(static)
    for (long i = 0; i < n; i++) values[i] = 1.0;
    double check = 0.0;
    for (int pass = -2; pass < atoi(argv[3]); pass++) {
        const double began = omp_get_wtime();
        const double sum = read_all(values, n);
        const double took = omp_get_wtime() - began;
        check += sum;
        if (pass >= 0) printf("%.4f\n", (double)n * sizeof(double) / 1e9 / took);
    }
    return check > 0.0 ? 0 : 1;
}
