# Words for stories.txt.
set -o pipefail

# field PATH [NAME]: what stands there in the object.
field() { kubectl get gadget "${2:-one}" -o "jsonpath={$1}"; }

# merge PATCH [NAME]: a merge patch.
merge() { kubectl patch gadget "${2:-one}" --type=merge -p "$1"; }

# switch GATE STATE ...: gates by their place in the definition.
switch() {
    local ops=""
    while [ $# -gt 0 ]; do
        ops+="${ops:+,}{\"op\":\"add\",\"path\":\"/spec/customFeatureGates/featureGates/$1/enabled\",\"value\":$2}"
        shift 2
    done
    kubectl patch crd gadgets.stable.example.com --type=json -p "[$ops]"
}

# nested STORED FOO QUX REQUEST: .spec.foo as it is after the request, with the gates in these states.
nested() {
    {
        switch 1 true 2 true &&
            kubectl patch gadget one --type=json -p "[{\"op\":\"add\",\"path\":\"/spec/foo\",\"value\":$1}]" &&
            if [ "$1" = '{}' ]; then merge '{"spec":{"foo":null}}'; fi &&
            switch 1 "$2" 2 "$3" &&
            kubectl patch gadget one --type=json -p "$4"
    } > nested.log 2>&1 || { cat nested.log; return 1; }
    field .spec.foo
}
ask='[{"op":"add","path":"/spec/foo","value":{"baz":2,"qux":3}}]'

# watched COMMAND: what a watch of one object tells while the command runs.
watched() {
    kubectl get gadget one --watch --output-watch-events -o 'jsonpath={.type} {.object.spec.image} {.object.metadata.generation}{"\n"}' > watched.log 2>&1 &
    local watcher=$! i
    for i in $(seq 100); do grep -q . watched.log && break; sleep 0.05; done
    eval "$1" > /dev/null 2>&1
    sleep 0.5
    kill "$watcher"
    wait "$watcher" 2> /dev/null
    cat watched.log
}

# Three servers on one store, for shared.txt.
ours() { kubectl --kubeconfig "$OURS" "$@"; }
off() { kubectl --kubeconfig "$OFF" "$@"; }
real() { kubectl --kubeconfig "$REAL" "$@"; }

# all KIND NAME: whether all servers show the same, managers included.
all() {
    local server
    for server in ours off real; do
        "$server" get "$@" -o json --show-managed-fields > "$server.json" || return 1
    done
    if diff ours.json real.json && diff off.json real.json; then echo same; fi
}
widgets() { sed -e 's/gadget/widget/g; s/Gadget/Widget/; s/\[ga\]/[wi]/' "$1"; }
[ -e widgets.yaml ] || { widgets gadgets.yaml > widgets.yaml; widgets one.yaml > wone.yaml; }
