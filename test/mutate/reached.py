# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""reached - which native test runs which line of which source, and how long it takes. For mutate.

It builds the tree once more, with --enable-coverage, runs each test there alone, and reads what gcov counted. What a
process did that was killed is not counted. It plants no mutants."""
import concurrent.futures
import json
import os
import signal
import subprocess
import time

LONGEST = 900       # s, a test


def variable(build, name):
    """The words of a variable of the Makefile, as this build was configured."""
    listing = f'include Makefile\nlisting:\n\t@printf "%s\\n" $({name})\n'
    made = subprocess.run(['make', '-s', '-f', '-', 'listing'], cwd=build, input=listing, capture_output=True,
                          text=True, check=True)
    return made.stdout.split()


def configure(src, build, *options):
    os.makedirs(build, exist_ok=True)
    if not os.path.exists(os.path.join(build, 'config.status')):
        subprocess.run([os.path.join(src, 'configure'), *options], cwd=build, check=True, capture_output=True)


def start(src, build, test, **environment):
    """A process group that runs the test in a network of its own, as the top of `build`."""
    path = test if os.access(os.path.join(build, test), os.X_OK) else os.path.join(src, test)
    command = ['unshare', '-n', 'sh', '-c', 'ip link set lo up; exec "$0"', path]
    return subprocess.Popen(command, cwd=build, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                            errors='replace', start_new_session=True, stdin=subprocess.DEVNULL,
                            env={**os.environ, 'srcdir': src, 'top_srcdir': src, 'top_builddir': build, **environment})


def end(child):
    """Kills what is left of the group."""
    try:
        os.killpg(child.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def count(src, build, test, counts):
    """The seconds that the test took; its counts are left under `counts`."""
    begin = time.monotonic()
    child = start(src, build, test, GCOV_PREFIX=counts, GCOV_PREFIX_STRIP=str(build.count('/')))
    try:
        child.communicate(timeout=LONGEST)
    except subprocess.TimeoutExpired:
        pass
    end(child)
    return time.monotonic() - begin


def lines_run(src, build, counts, folders):
    """{source: set of lines} of one test."""
    found, data = {}, []
    for where, _, names in os.walk(counts):
        for name in names:
            path = os.path.join(where, name)
            notes = os.path.relpath(path, counts)[:-len('gcda')] + 'gcno'
            if name.endswith('.gcda') and notes.startswith(folders):
                data.append(path)
                os.symlink(os.path.join(build, notes), path[:-len('gcda')] + 'gcno')
    if not data:
        return found
    output = subprocess.run(['gcov', '--json-format', '--stdout', *data], cwd=build, capture_output=True, text=True,
                            check=False).stdout
    for report in filter(str.strip, output.split('\n')):
        for file in json.loads(report)['files']:
            path = os.path.relpath(os.path.realpath(os.path.join(build, file['file'])), src)
            if path.startswith(folders):
                found.setdefault(path, set()).update(line['line_number'] for line in file['lines'] if line['count'])
    return found


def learn(src, build, folders, jobs):
    """{'seconds': {test: s}, 'lines': {source: {line: [tests]}}}, without tests that run no line of the folders."""
    configure(src, build, '--enable-coverage')
    for targets in ('all',), ('check', 'TESTS='):
        subprocess.run(['make', '-s', f'-j{jobs}', *targets], cwd=build, check=True, capture_output=True)
    seconds, lines = {}, {}

    def one(test):
        counts = os.path.join(build, 'counts', test.replace('/', '-'))
        subprocess.run(['rm', '-rf', counts], check=True)
        took = count(src, build, test, counts)
        found = lines_run(src, build, counts, folders)
        subprocess.run(['rm', '-rf', counts], check=True)
        return test, took, found

    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for test, took, found in pool.map(one, variable(build, 'TESTS')):
            if found:
                seconds[test] = took
            for path, numbers in found.items():
                for number in sorted(numbers):
                    lines.setdefault(path, {}).setdefault(str(number), []).append(test)
    return {'seconds': seconds, 'lines': lines}
