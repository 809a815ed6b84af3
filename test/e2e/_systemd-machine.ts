import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { full } from '../_full.ts'
import { until } from '../gpu/launcher/_launch.ts'

/** A Debian in memory that systemd has booted in namespaces and in a control group of its own. */
export type SystemdMachine = Exclude<Awaited<ReturnType<typeof openSystemdMachine>>, string>

/** No agent of this machine, such as a getty on its serial console, starts: devices are only those that programs need. */
const bootScript = `
set -e
folder=$1
mount -t tmpfs -o mode=755 tmpfs $folder
mkdir $folder/root $folder/groups
mount -t cgroup2 cgroup2 $folder/groups
debootstrap --variant=minbase --include=systemd,systemd-sysv,dbus,bubblewrap bookworm $folder/root >$folder/log 2>&1 || {
  tail -n 1 $folder/log
  exit 1
}
mount --bind $folder/root $folder/root
cd $folder/root
mount -t tmpfs -o mode=755 tmpfs run
mount -t tmpfs -o mode=755 tmpfs dev
mkdir dev/pts dev/shm
for device in null:1:3 zero:1:5 full:1:7 random:1:8 urandom:1:9 tty:5:0; do
  mknod -m 666 dev/$(echo $device | tr : ' ' | sed 's/ / c /')
done
ln -s /dev/null etc/systemd/system/console-getty.service
group=$folder/groups/infer-test-$$
mkdir $group
(
  echo 0 >$group/cgroup.procs
  exec unshare --pid --mount --uts --ipc --net --cgroup --fork --kill-child --propagation private sh -c '
    set -e
    mount -t proc proc proc
    mount -t sysfs sysfs sys
    mount -t cgroup2 cgroup2 sys/fs/cgroup
    pivot_root . mnt
    umount -l mnt
    exec env -i container=infer-test /lib/systemd/systemd'
) &
echo "holder $!"
wait || true
until find $group -depth -type d -exec rmdir {} + 2>/dev/null; do sleep 0.1; done`

/** Boots the machine, in half a minute. Returns the reason as a sentence where that is not possible or not wanted. */
export async function openSystemdMachine() {
  if (!full) return 'only npm run test:full boots a machine'
  if (process.getuid?.() !== 0) return 'only root can boot a machine'
  const missing = ['debootstrap', 'unshare', 'nsenter'].filter(name => spawnSync(name, ['--version']).error)
  if (missing.length > 0) return `${missing.join(' and ')} must be installed`
  const folder = mkdtempSync(join(tmpdir(), 'infer-machine-'))
  const script = spawn('unshare', ['--mount', '--propagation', 'private', 'sh', '-c', bootScript, 'sh', folder], {
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const said: string[] = []
  const ended = once(script, 'close')
  script.stderr.on('data', piece => said.push(String(piece)))
  const lines = createInterface(script.stdout)
  lines.on('line', line => said.push(line))
  const [first = ''] = (await Promise.race([once(lines, 'line'), ended.then(() => [])])) as [string?]
  const holder = Number(/^holder (\d+)$/.exec(first)?.[1])
  const dispose = async () => {
    if (holder) process.kill(holder, 'SIGKILL')
    await ended
    rmSync(folder, { recursive: true, force: true })
  }
  if (!holder) {
    await dispose()
    return `no machine could be booted: ${said.join(' ').trim()}`
  }

  /** Process id of its systemd, here. */
  let init = ''
  await until(() => (init = readFileSync(`/proc/${holder}/task/${holder}/children`, 'utf8').trim()) !== '')
  let isOver = false
  void ended.then(() => (isOver = true))
  const inside = (argv: readonly string[]) => ['--target', init, '--all', '--', ...argv]
  const env = { PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin', LC_ALL: 'C.UTF-8', HOME: '/root' }
  /** Runs a program until it exits. */
  function run(...argv: string[]) {
    const { status, stdout, stderr } = spawnSync('nsenter', inside(argv), { encoding: 'utf8', env })
    return { code: status, out: stdout.trim(), err: stderr.trim() }
  }
  await until(() => isOver || /^(running|degraded)$/.test(run('systemctl', 'is-system-running').out))
  if (isOver) throw new Error(`The machine ended: ${said.join(' ')}`)

  return {
    run,
    /** Runs a program, and returns what it printed. Throws if it fails. */
    succeed: (...argv: string[]): string => {
      const { code, out, err } = run(...argv)
      if (code !== 0) throw new Error(`${argv.join(' ')} ended with ${code}: ${out}\n${err}`)
      return out
    },
    /** Path of one of its files, here. */
    pathOf: (path: string): string => join(`/proc/${init}/root`, path),
    /** Starts a program of this machine that sees the network of that one. */
    startBeside: (argv: readonly string[]) =>
      spawn('nsenter', ['--target', init, '--net', '--', ...argv], { stdio: ['pipe', 'pipe', 'inherit'] }),
    [Symbol.asyncDispose]: dispose,
  }
}
