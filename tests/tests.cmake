# Every test, by label: unit (C programs), cli (the tool from outside), lint (rules of the house),
# cross (AArch64 under qemu), oracle (independent programs and data), fuzz (malformed input through the
# fuzz entry points). Exit status 77 means skipped. tests/README.md says what each proves.
pkg_check_modules(CMOCKA REQUIRED IMPORTED_TARGET cmocka)
find_package(Python3 COMPONENTS Interpreter)
# tools/check prepares an environment with the packages that oracle tests compare with.
if(EXISTS "$ENV{BITCONV_ORACLE_PYTHON}")
    set(oracle_python "$ENV{BITCONV_ORACLE_PYTHON}")
else()
    set(oracle_python "${Python3_EXECUTABLE}")
endif()

# Data that is not part of a clone; tests that need it are skipped where it is absent.
set(BITCONV_SHARED "${PROJECT_SOURCE_DIR}/../shared" CACHE PATH "Folder with golden data")

add_library(bitconv_test_support INTERFACE)
target_include_directories(bitconv_test_support INTERFACE src . tests)
target_compile_definitions(bitconv_test_support INTERFACE
    BITCONV_SOURCE_DIR="${PROJECT_SOURCE_DIR}" BITCONV_BIN="$<TARGET_FILE:bitconv>")
target_link_libraries(bitconv_test_support INTERFACE bitconv_flags bitconv_static PkgConfig::CMOCKA
    PkgConfig::CJSON Threads::Threads m)

file(GLOB support_sources CONFIGURE_DEPENDS tests/support/*.c)
add_library(bitconv_support STATIC ${support_sources})
target_link_libraries(bitconv_support PUBLIC bitconv_test_support)

# Labels with long tests go first (COST), so that none of those is left to run alone at the end.
set(cost_cross 4)
set(cost_oracle 3)
set(cost_unit 2)
set(cost_fuzz 1)
set(cost_cli 1)
set(cost_lint 1)

function(bitconv_add_test name label)
    add_test(NAME ${label}.${name} COMMAND ${ARGN})
    set_tests_properties(${label}.${name} PROPERTIES LABELS ${label} SKIP_RETURN_CODE 77 TIMEOUT 900
        COST ${cost_${label}}
        ENVIRONMENT "BITCONV_SHARED=${BITCONV_SHARED};BITCONV_BIN=$<TARGET_FILE:bitconv>;BITCONV_SOURCE_DIR=${PROJECT_SOURCE_DIR};BITCONV_BUILD_DIR=${PROJECT_BINARY_DIR};UBSAN_OPTIONS=print_stacktrace=1;ASAN_OPTIONS=allocator_may_return_null=1")
endfunction()

file(GLOB unit_sources CONFIGURE_DEPENDS tests/unit/test_*.c)
foreach(source ${unit_sources})
    get_filename_component(program ${source} NAME_WE)
    string(REPLACE "test_" "" name ${program})
    add_executable(${program} ${source})
    target_link_libraries(${program} PRIVATE bitconv_support)
    bitconv_add_test(${name} unit ${program})
endforeach()

# Each fuzz entry point as an ordinary test: the driver feeds it mutations of its seeds.
file(GLOB fuzz_sources CONFIGURE_DEPENDS tests/fuzz/fuzz_*.c)
foreach(source ${fuzz_sources})
    get_filename_component(program ${source} NAME_WE)
    string(REPLACE "fuzz_" "" name ${program})
    add_executable(${program} ${source} tests/fuzz/driver.c)
    target_link_libraries(${program} PRIVATE bitconv_support)
    bitconv_add_test(${name} fuzz ${program})
endforeach()

file(GLOB bench_sources CONFIGURE_DEPENDS tests/bench/bench_*.c)
foreach(source ${bench_sources})
    get_filename_component(program ${source} NAME_WE)
    add_executable(${program} ${source})
    target_link_libraries(${program} PRIVATE bitconv_support)
endforeach()

# Cross tests build everything with a compiler of their own: what this build is made with is nothing
# to them, and with sanitizers they would only be run a second time.
set(kinds lint cli)
if(NOT BITCONV_SANITIZE)
    list(APPEND kinds cross)
endif()
foreach(kind ${kinds})
    file(GLOB scripts CONFIGURE_DEPENDS tests/${kind}/*.sh)
    foreach(script ${scripts})
        get_filename_component(name ${script} NAME_WE)
        bitconv_add_test(${name} ${kind} bash ${script})
    endforeach()
endforeach()

# Writes what the engine computes, for oracle.forward.
add_executable(forward_dump tests/oracle/forward_dump.c)
target_link_libraries(forward_dump PRIVATE bitconv_support)

# Prints the rotations of a model, for oracle.rope, which also runs forward_dump.
add_executable(rope_dump tests/oracle/rope_dump.c)
target_link_libraries(rope_dump PRIVATE bitconv_support)

if(oracle_python)
    file(GLOB scripts CONFIGURE_DEPENDS tests/oracle/*.py)
    foreach(script ${scripts})
        get_filename_component(name ${script} NAME_WE)
        bitconv_add_test(${name} oracle ${oracle_python} ${script} $<TARGET_FILE:bitconv>)
    endforeach()
endif()

# The generator of fixtures/models; cli.fixtures compares its output with the committed folders.
add_executable(make_fixtures tests/fixtures/make_fixtures.c tests/fixtures/fixture_tokenizers.c)
target_include_directories(make_fixtures PRIVATE tests/fixtures)
target_link_libraries(make_fixtures PRIVATE bitconv_support)

# Cases for generated kernels: the library's packed bytes and the results by definition.
add_executable(codegen_cases tests/codegen/codegen_cases.c)
target_link_libraries(codegen_cases PRIVATE bitconv_support)
