# Macros of the server's build that PerconaFT calls. The flags that it asks for switch warnings, which
# are off, and exceptions, which it switches on again itself.
function(MY_CHECK_AND_SET_COMPILER_FLAG)
endfunction()

function(INSTALL_DOCUMENTATION)
endfunction()
