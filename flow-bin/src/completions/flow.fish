# Completion of flow for fish.
function __flow_complete
    set -l words (commandline -opc) (commandline -ct)
    $words[1] __complete $words[2..] 2>/dev/null
end
function __flow_knows
    test (count (__flow_complete)) -gt 0
end
complete -c flow -n __flow_knows -f -a '(__flow_complete)'
