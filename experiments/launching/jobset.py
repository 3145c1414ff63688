"""The same job as a manifest for GKE: a JobSet (https://jobset.sigs.k8s.io) with one pod a host."""

import yaml

from experiments.launching.flags import LaunchFlags

IMAGE = 'python:3.12'
_SCRIPT = r"""set -u
set_up() {
    mkdir -p /cloze && cd /cloze && tar -xzf "/cloze/runs/$ARCHIVE" &&
        python -m pip install --quiet --disable-pip-version-check --root-user-action ignore -r requirements-tpu.txt
}
# tar and pip end with 2 after a hiccup too, which would read as a user's mistake.
set_up || exit 1
asked= pid=
trap 'asked=1; kill -TERM "$pid"' TERM
"$@" &
pid=$!
[ -z "$asked" ] || kill -TERM "$pid"  # asked before it had a number
code=0
wait "$pid" || code=$?
# A command that was told to stop saves and ends with 0, which would read as finished.
if [ -n "$asked" ]; then wait "$pid" || true; exit 143; fi
exit "$code"
"""
_MISTAKE = 2
# A node pool of several hosts is one slice; without this, pods of a job go to any pool of their topology.
_ONE_SLICE = {'alpha.jobset.sigs.k8s.io/exclusive-topology': 'cloud.google.com/gke-nodepool'}


def archive(launch: LaunchFlags) -> str:
    """Where in the bucket's folder the packed repository is."""
    return f'launch/{launch.name}.tar.gz'


def manifest(launch: LaunchFlags, command: list[str]) -> str:
    """The manifest, with the commands that bring it to life as comments at its head."""
    bucket, _, folder = launch.bucket.removeprefix('gs://').partition('/')
    hosts, chips = launch.slice.hosts, launch.slice.chips
    selector = {
        'cloud.google.com/gke-tpu-accelerator': launch.slice.generation.gke,
        'cloud.google.com/gke-tpu-topology': launch.slice.shape,
    }
    if launch.spot:
        selector['cloud.google.com/gke-spot'] = 'true'
    options = 'implicit-dirs,metadata-cache:ttl-secs:0' + (f',only-dir:{folder}' if folder else '')
    container = {
        'name': 'cloze',
        'image': IMAGE,
        'command': ['bash', '-c', literal(_SCRIPT), 'cloze', *map(literal, command)],
        'env': [{'name': 'ARCHIVE', 'value': archive(launch)}],
        'ports': [{'containerPort': 8471}, {'containerPort': 8080}],
        'resources': {'limits': {'google.com/tpu': chips // hosts}},
        'volumeMounts': [{'name': 'runs', 'mountPath': '/cloze/runs'}],
    }
    pod = {
        'restartPolicy': 'Never',
        'terminationGracePeriodSeconds': 300,
        'nodeSelector': selector,
        'containers': [container],
        'volumes': [
            {
                'name': 'runs',
                'csi': {
                    'driver': 'gcsfuse.csi.storage.gke.io',
                    'volumeAttributes': {'bucketName': bucket, 'mountOptions': options},
                },
            }
        ],
    }
    exit_codes = {'containerName': 'cloze', 'operator': 'In', 'values': [_MISTAKE]}
    job = {
        'parallelism': hosts,
        'completions': hosts,
        'completionMode': 'Indexed',
        'backoffLimit': 0,
        # A user's mistake ends all; what else fails, a preemption above all, starts all pods anew.
        'podFailurePolicy': {'rules': [{'action': 'FailJob', 'onExitCodes': exit_codes}]},
        'template': {'metadata': {'annotations': {'gke-gcsfuse/volumes': 'true'}}, 'spec': pod},
    }
    rule = {'name': 'mistake', 'action': 'FailJobSet', 'onJobFailureReasons': ['PodFailurePolicy']}
    jobset = {
        'apiVersion': 'jobset.x-k8s.io/v1alpha2',
        'kind': 'JobSet',
        'metadata': {'name': launch.name, **({'annotations': _ONE_SLICE} if hosts > 1 else {})},
        'spec': {
            'failurePolicy': {'maxRestarts': 1000 if launch.spot else launch.retries, 'rules': [rule]},
            'replicatedJobs': [{'name': 'workers', 'replicas': 1, 'template': {'spec': job}}],
        },
    }
    return _head(launch) + yaml.dump(jobset, Dumper=_Dumper, sort_keys=False, width=120)


def literal(text: str) -> str:
    """Text that Kubernetes leaves as it is: it replaces $(NAME) in commands, and $$ stands for one dollar."""
    return text.replace('$', '$$')


class _Dumper(yaml.SafeDumper):
    """Writes a script line by line, as one reads it."""


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.Node:
    return dumper.represent_scalar('tag:yaml.org,2002:str', text, style='|' if '\n' in text else None)


_Dumper.add_representer(str, _text)


def _head(launch: LaunchFlags) -> str:
    return f"""\
# In the repository's folder, copy the working tree into the bucket; then apply this file:
#   git ls-files -z --cached --others --exclude-standard | tar -czf - --null -T - |
#     gcloud storage cp - {launch.bucket}/{archive(launch)}
#   kubectl apply -f THIS_FILE
#   kubectl logs -f -l batch.kubernetes.io/job-name={launch.name}-workers-0,batch.kubernetes.io/job-completion-index=0
# The cluster needs JobSet, the Cloud Storage FUSE driver, TPU nodes of this topology, and a service account of its pods
# that may read and write the bucket (docs/tpu.md).
"""
