# Read with --rcfile, after the system's file and in place of the user's, which it reads first; through
# ENV where bash is to be a POSIX shell. It is read as one, before the user's options hold, and what
# they show and say of ours is dropped.
{
@USER_FILE@
{
    \builtin . '@DIRECTORY@/follow'
} >/dev/null 2>&1
}
