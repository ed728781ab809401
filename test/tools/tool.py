# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""tool - what the tests of the tools share: they run a program of the build tree, on a dat.conf and a root
directory of their own, and compare what it prints. A test is a function whose name says what it promises.
Run in the top of a build tree."""
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback

BUILD = os.getcwd()
SOFT = BUILD + '/.libs/libdaplsoft.so.2'
OFA = BUILD + '/.libs/libdaplofa.so.2'
tests = []


class Skip(Exception):
    pass


def test(function):
    tests.append(function)
    return function


def check(good, what):
    if not good:
        raise AssertionError(what)


def same(got, expected, what=''):
    check(got == expected, f'{what}: {got!r} instead of {expected!r}')


def has(text, part):
    check(part in text, f'{part!r} is not in {text!r}')


class Place:
    """A directory with a dat.conf, and a root for DAT_TEST_ROOT."""
    def __init__(self):
        self.dir = tempfile.mkdtemp()
        os.chmod(self.dir, 0o755)
        self.conf = self.dir + '/dat.conf'
        self.root = self.dir + '/root'
        self.environment = {}
        self.before = []        # a command in front: unshare, setpriv
        self.networks = []

    def network(self):
        """A namespace; commands of the first run there."""
        network = Network()
        self.networks.append(network)
        self.before = self.networks[0].enter
        return network

    def write(self, path, text):
        path = os.path.join(self.dir, path.lstrip('/'))
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, 'w', encoding='utf-8') as file:
            file.write(text)
        return path

    def entries(self, *entries):
        """Each is (name, library, ia_params)."""
        self.write('dat.conf', ''.join(f'{name} u2.0 nonthreadsafe default {library} dapl.2.0 "{params}" ""\n'
                                       for name, library, params in entries))

    def run(self, program, *arguments, status=0, stdin=None):
        environment = {name: value for name, value in os.environ.items()
                       if not name.startswith(('DAT_', 'DAPL_', 'IBV_'))}
        environment.update(DAT_OVERRIDE=self.conf, DAT_TEST_ROOT=self.root, LC_ALL='C')
        environment.update(self.environment)
        environment = {name: value for name, value in environment.items() if value is not None}
        done = subprocess.run([*self.before, f'{BUILD}/{program}', *arguments], env=environment, input=stdin,
                              capture_output=True, text=True, timeout=120, check=False)
        if status is None:      # the caller looks at it, and at stderr
            return done
        check(done.returncode == status, f'{program} {" ".join(arguments)}: exit {done.returncode} instead of '
              f'{status}\n{done.stdout}{done.stderr}')
        if status != 2:
            same(done.stderr, '', 'stderr') if status == 0 else None
        return done

    def start(self, program, *arguments):
        """A program that the caller ends; its stdout is a pipe."""
        environment = dict(os.environ, DAT_OVERRIDE=self.conf, DAT_TEST_ROOT=self.root, LC_ALL='C', **self.environment)
        environment = {name: value for name, value in environment.items() if value is not None}
        # nsenter and libtool's wrapper become the program, so a signal reaches it
        return subprocess.Popen([*self.before, f'{BUILD}/{program}', *arguments], env=environment, text=True,
                                stdout=subprocess.PIPE)

    def ignore_sigchld(self):
        """Programs of .libs inherit an ignored SIGCHLD; shells, as libtool's wrapper, reset it."""
        self.before = ['env', '--ignore-signal=CHLD']
        self.environment['LD_LIBRARY_PATH'] = BUILD + '/.libs'

    def json(self, program, *arguments, status=0):
        return json.loads(self.run(program, *arguments, '--json', status=status).stdout)

    def usage(self, program, line, *arguments):
        """A wrong option: one line that names it, and where to read more."""
        done = self.run(program, *arguments, status=2)
        same(done.stdout, '', 'stdout')
        same(done.stderr, f"{program}: {line}\nTry '{program} --help'.\n", ' '.join(arguments))


def sysconfdir():
    """Where dat.conf and dapl.conf are."""
    text = subprocess.run(['sed', '-n', '-e', 's/^prefix = //p', '-e', 's/^sysconfdir = //p', 'Makefile'],
                          capture_output=True, text=True, check=True).stdout.split()
    return text[1].replace('${prefix}', text[0]).replace('$(prefix)', text[0])


def own_network(*commands):
    """A command that runs its arguments in a network namespace, after `commands` of ip."""
    if not shutil.which('unshare') or not shutil.which('ip'):
        raise Skip('no unshare or no ip')
    unshare = ['unshare', '-n'] if os.geteuid() == 0 else ['unshare', '-rn']
    if subprocess.run([*unshare, 'true'], capture_output=True, check=False).returncode:
        raise Skip('network namespaces are not permitted here')
    script = ''.join(f'ip {command} || exit 99; ' for command in commands)
    return [*unshare, 'sh', '-c', script + 'exec "$@"', 'sh']


class Network:
    """A network namespace that lives as long as the object; ip() configures it, and `enter` stands in front
    of commands that run there."""
    def __init__(self):
        if not shutil.which('unshare') or not shutil.which('ip') or not shutil.which('nsenter'):
            raise Skip('no unshare, nsenter or ip')
        root = os.geteuid() == 0
        self.process = subprocess.Popen([*(['unshare', '-n'] if root else ['unshare', '-rn']),
                                         'sh', '-c', 'echo; read line'],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        if not self.process.stdout.readline():
            raise Skip('network namespaces are not permitted here')
        self.enter = ['nsenter', '-t', str(self.process.pid), *([] if root else ['-U', '--preserve-credentials']), '-n']
        self.ip('link set lo up')

    def ip(self, *commands, json_output=False):
        """Each is the arguments of ip. Gives the output of the last, as JSON if wanted."""
        for command in commands:
            done = subprocess.run([*self.enter, 'ip', *command.split()], capture_output=True, text=True, check=False)
            check(done.returncode == 0, f'ip {command}: {done.stderr}')
        return json.loads(done.stdout) if json_output else done.stdout

    def run(self, script):
        done = subprocess.run([*self.enter, 'sh', '-c', script], capture_output=True, text=True, check=False)
        check(done.returncode == 0, f'{script}: {done.stderr}')

    def veth(self, name, other, network=None):
        self.ip(f'link add {name} type veth peer name {other}' +
                (f' netns {network.process.pid}' if network else ''))

    def await_up(self, *names):
        """The kernel takes up to a second to notice the carrier of a link that was set up, or longer under load."""
        until = time.monotonic() + 30
        while any(self.ip(f'-j link show {name}', json_output=True)[0]['operstate'] != 'UP' for name in names):
            check(time.monotonic() < until, f'{names}: not up')
            time.sleep(0.01)

    def close(self):
        self.process.stdin.close()
        self.process.wait(10)
        self.process.stdout.close()


def run(function):
    """Runs a test in a place of its own, which goes however the test ends. Gives PASS, SKIP or FAIL, and why."""
    place = Place()
    try:
        function(place)
        return 'PASS', ''
    except Skip as reason:
        return 'SKIP', f' - {reason}'
    except (AssertionError, subprocess.TimeoutExpired, json.JSONDecodeError) as fault:
        return 'FAIL', f' - {fault}'
    except Exception:           # pylint: disable=broad-exception-caught
        return 'FAIL', f' - {traceback.format_exc()}'
    finally:
        for network in place.networks:
            network.close()
        shutil.rmtree(place.dir, ignore_errors=True)


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))     # so that tests end what they started
    only = sys.argv[1:]
    results = []
    for function in tests:
        if only and function.__name__ not in only:
            continue
        result, why = run(function)
        print(result, function.__name__ + why, flush=True)
        results.append(result)
    print(f'{results.count("PASS")} passed, {results.count("FAIL")} failed, {results.count("SKIP")} skipped')
    sys.exit(1 if 'FAIL' in results else 0)
