# Included by llama.cpp's own project() through CMAKE_PROJECT_INCLUDE, so that its source
# stays as it came. Compiling many small files as one halves the time of the build.
function(lab_unity)
  foreach(target llama mtmd llama-common server-context)
    if(TARGET ${target})
      set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 12)
    endif()
  endforeach()
  # Explicit specialisations after use, and a header that forbids its neighbours' company.
  set_source_files_properties(${CMAKE_SOURCE_DIR}/common/json.cpp
    TARGET_DIRECTORY llama-common PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  set_source_files_properties(
    ${CMAKE_SOURCE_DIR}/tools/mtmd/mtmd-helper.cpp ${CMAKE_SOURCE_DIR}/tools/mtmd/mtmd-helper-gen.cpp
    TARGET_DIRECTORY mtmd PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
endfunction()

# Targets exist only when the top folder has been read to its end.
if(NOT DEFINED LAB_UNITY_ASKED)
  set(LAB_UNITY_ASKED TRUE)
  cmake_language(DEFER DIRECTORY ${CMAKE_SOURCE_DIR} CALL lab_unity)
endif()
