"""The parts and the faults in them: one table."""
from scenario.service.faults import (
    append_only_record, client_per_request, dangling_task, error_path_fd, health_check, shared_memory, temp_files,
    threads, unbounded_cache, unclosed_generator, undrained_child, zombie_child)

# part of the service -> (fault that can be in it, the module that holds both ways of doing it)
PARTS = {
    "client": ("client-per-request", client_per_request),
    "cache": ("unbounded-cache", unbounded_cache),
    "journal": ("append-only-record", append_only_record),
    "audit": ("dangling-task", dangling_task),
    "relay": ("unclosed-generator", unclosed_generator),
    "renderer": ("zombie-child", zombie_child),
    "transcoder": ("undrained-child", undrained_child),
    "scratch": ("temp-files", temp_files),
    "indexer": ("threads", threads),
    "slots": ("shared-memory", shared_memory),
    "health": ("health-check", health_check),
    "spool": ("error-path-fd", error_path_fd),
}


def build_parts(settings):
    """Every part, right unless its fault is asked for. A fault nobody knows is an error, not a clean service."""
    known = {fault for fault, _ in PARTS.values()}
    unknown = sorted(set(settings.faults) - known)
    if unknown:
        raise SystemExit(f"no such fault: {', '.join(unknown)}; there are: {', '.join(sorted(known))}")
    parts = {}
    for name, (fault, module) in PARTS.items():
        kind = module.Wrong if fault in settings.faults else module.Right
        parts[name] = kind(settings, settings.faults.get(fault, {}))
    return parts
