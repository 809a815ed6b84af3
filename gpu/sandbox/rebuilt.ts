import { first, type Wrapper } from '../launcher/wrapper.ts'
import { kept, type SandboxTool } from './level.ts'
import { coverOf, type Mount } from './mount.ts'
import { type MountEntry, mountAt, optionsOf } from './mount-table.ts'

/**
 * Builds the view on an empty folder and moves to it. Its arguments: the folder, then for each phase the folders to make,
 * the files to make, and what to mount, one on a line; `--`; then the program and its arguments. PATH is the engine's
 * and may name anything, so the tools are looked for in the system's own folders.
 */
const script = `
set -ef
umask 022
path=$PATH
PATH=/usr/sbin:/usr/bin:/sbin:/bin:/run/current-system/sw/bin
mount -t tmpfs -o mode=755,nosuid,nodev infer "$1"
cd "$1"
shift
IFS='
'
while [ "$1" != -- ]; do
  [ -z "$1" ] || mkdir -p -- $1
  for file in $2; do : >"$file"; done
  [ "$4" != -- ] || cp -P /dev/fd /dev/stdin /dev/stdout /dev/stderr dev
  printf '%s\\n' "$3" >.table
  mount -a -T .table
  shift 3
done
shift
if command -v ip >/dev/null; then ip link set lo up 2>/dev/null || :; fi
pivot_root . .old
umount -l /.old
cd /
PATH=$path
exec "$@"
`

/** What the script runs. */
export const rebuildPrograms = ['setpriv', 'unshare', 'mount', 'umount', 'pivot_root', 'mkdir', 'cp']

export interface RebuildOptions {
  network: boolean
  /** An empty folder. */
  root: string
  /** What is mounted on this machine. */
  table: readonly MountEntry[]
  /** Whom the engine runs as. */
  uid: number
  gid: number
}

/** How an engine is started in this view of the file system by the tools of util-linux. Pure. */
export function rebuilt(
  { programs, userNamespace }: Pick<SandboxTool, 'programs' | 'userNamespace'>,
  mounts: readonly Mount[],
  { network, root, table, uid, gid }: RebuildOptions,
): Wrapper {
  const { setpriv = 'setpriv', unshare = 'unshare' } = programs
  const keep = userNamespace ? '' : kept.map(name => `,+${name}`).join('')
  return {
    name: 'unshare',
    programs: rebuildPrograms,
    prefix: [
      [setpriv, '--pdeathsig', 'KILL', '--no-new-privs', '--'],
      [unshare, '--mount', '--pid', '--ipc', '--uts', ...(network ? [] : ['--net'])],
      // The tools of util-linux refuse users other than root, whatever privileges they have.
      userNamespace ? ['--user', '--map-root-user'] : [],
      ['--fork', '--kill-child=SIGKILL', '--', '/bin/sh', '-c', script, 'infer-sandbox', root],
      phasesOf(mounts).flatMap((phase, at, all) =>
        phaseArguments(phase, root, table, at === all.length - 1 ? mounts : undefined),
      ),
      // Back to the user that it was, in a user namespace of its own that owns none of the mounts.
      ['--', ...(userNamespace ? [unshare, '--user', `--map-user=${uid}`, `--map-group=${gid}`, '--'] : [])],
      [setpriv, `--bounding-set=-all${keep}`, '--inh-caps=-all', '--ambient-caps=-all', '--', ...first],
    ].flat(),
    signals: 'group',
    depth: 2,
    promise: 'Engines and everything they start end with this process, however it ends (own process namespace).',
  }
}

interface Phase {
  folders: string[]
  files: string[]
  mounts: Mount[]
}

/** What has to be made on a file system of a phase can only be made in the next one, when it is mounted. */
function phasesOf(mounts: readonly Mount[]): Phase[] {
  const phases: Phase[] = [{ folders: ['.old'], files: [], mounts: [] }]
  const before: Mount[] = []
  for (const mount of [...mounts, ...devices]) {
    const cover = coverOf(mount.to, before)
    if (cover && cover.kind !== 'bind' && phases.at(-1)!.mounts.includes(cover))
      phases.push({ folders: [], files: [], mounts: [] })
    const phase = phases.at(-1)!
    // Whatever lies in a folder of the machine is there already.
    if (cover === undefined || cover.kind === 'empty' || cover.kind === 'dev') {
      const list = mount.kind === 'bind' && mount.file ? phase.files : phase.folders
      list.push(mount.to.slice(1))
      if (list === phase.files) phase.folders.push(mount.to.slice(1, mount.to.lastIndexOf('/')) || '.')
    }
    phase.mounts.push(mount)
    before.push(mount)
  }
  return phases
}

/** What is in /dev besides the cards. */
const devices: readonly Mount[] = [
  ...['null', 'zero', 'full', 'random', 'urandom', 'tty'].map(name => ({
    kind: 'bind' as const,
    mode: 'device' as const,
    from: `/dev/${name}`,
    to: `/dev/${name}`,
    file: true,
  })),
  { kind: 'empty', to: '/dev/shm', sealed: false },
]

/** The last phase is that of /dev, which is complete with a terminal device; then the root takes nothing more. */
function phaseArguments(
  { folders, files, mounts }: Phase,
  root: string,
  table: readonly MountEntry[],
  /** Given for the last phase. */
  all: readonly Mount[] | undefined,
): string[] {
  const lines = mounts.flatMap(mount => linesOf(mount, root, table))
  if (all) {
    folders.push('dev/pts')
    files.push('dev/ptmx')
    lines.push(
      line('devpts', `${root}/dev/pts`, 'devpts', 'newinstance,ptmxmode=0666,mode=620,nosuid,noexec'),
      line(`${root}/dev/pts/ptmx`, `${root}/dev/ptmx`, 'none', 'bind'),
      ...all
        .filter(mount => mount.kind === 'empty' && mount.sealed)
        .map(({ to }) => line(again, root + to, 'none', 'remount,bind,ro,nosuid,nodev')),
      line(again, root, 'none', 'remount,bind,ro,nosuid,nodev'),
    )
  }
  return [[...new Set(folders)].join('\n'), files.join('\n'), lines.join('\n')]
}

/** The lines of fstab(5) that make this mount below the folder that becomes the root. */
function linesOf(mount: Mount, root: string, table: readonly MountEntry[]): string[] {
  const to = root + mount.to
  switch (mount.kind) {
    case 'empty':
      return [line('infer', to, 'tmpfs', 'mode=1777,nosuid,nodev')]
    case 'dev':
      return [line('infer', to, 'tmpfs', 'mode=755,nosuid')]
    case 'proc':
      return [mount.own ? line('proc', to, 'proc', 'nosuid,nodev,noexec') : line('/proc', to, 'none', 'rbind')]
    case 'bind': {
      if (mount.mode !== 'read') return [line(mount.from, to, 'none', 'rbind')]
      const readOnly = (entry: MountEntry | undefined) => ['ro,nosuid,nodev', ...optionsOf(entry)].join(',')
      // Making a mount read-only leaves those below it as they are.
      const below = table.filter(({ path, type }) => path.startsWith(`${mount.from}/`) && !unreachable.test(type))
      return [
        line(mount.from, to, 'none', `rbind,${readOnly(mountAt(mount.from, table))}`),
        ...below.map(entry =>
          line(again, to + entry.path.slice(mount.from.length), 'none', `remount,bind,${readOnly(entry)}`),
        ),
      ]
    }
  }
}

/** Their owner alone may look at them, and asking some of them waits for another machine. */
const unreachable = /^(fuse|autofs)/

/** Any source that is mounted nowhere: mount(8) passes over what it takes to be mounted already. */
const again = 'again'

const line = (from: string, to: string, type: string, options: string): string =>
  `${escaped(from)} ${escaped(to)} ${type} ${options} 0 0`

/** As fstab(5) writes what separates its fields. */
const escaped = (path: string): string =>
  path.replaceAll(/[ \t\n\\#]/g, sign => `\\${sign.charCodeAt(0).toString(8).padStart(3, '0')}`)
