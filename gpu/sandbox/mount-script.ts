import { keptCapabilities, type SandboxTool } from './level.ts'
import { coverOf, type Mount, type MountEntry, mountAt, mountOptions } from './mount.ts'
import { first, namespaceWrapper, type Wrapper } from './wrapper.ts'

/**
 * Mounts the file system below an empty folder and makes it the root. Arguments: the folder; for each phase the
 * folders to create, the files to create and the mounts, one per line; `--`; the program and its arguments. PATH is
 * the engine's and not trusted, so tools are searched in the system folders.
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

export const mountScriptPrograms = ['setpriv', 'unshare', 'mount', 'umount', 'pivot_root', 'mkdir', 'cp']

export interface MountScriptOptions {
  network: boolean
  /** An empty folder. */
  root: string
  table: readonly MountEntry[]
  uid: number
  gid: number
}

/** Returns the util-linux command that starts an engine with these mounts. Pure. */
export function mountScript(
  { programs, userNamespace }: Pick<SandboxTool, 'programs' | 'userNamespace'>,
  mounts: readonly Mount[],
  { network, root, table, uid, gid }: MountScriptOptions,
): Wrapper {
  const { setpriv = 'setpriv', unshare = 'unshare' } = programs
  const keep = userNamespace ? '' : keptCapabilities.map(name => `,+${name}`).join('')
  return namespaceWrapper('unshare', mountScriptPrograms, [
    [setpriv, '--pdeathsig', 'KILL', '--no-new-privs', '--'],
    [unshare, '--mount', '--pid', '--ipc', '--uts', ...(network ? [] : ['--net'])],
    // The tools of util-linux refuse users other than root, regardless of capabilities.
    userNamespace ? ['--user', '--map-root-user'] : [],
    ['--fork', '--kill-child=SIGKILL', '--', '/bin/sh', '-c', script, 'infer-sandbox', root],
    phasesOf(mounts).flatMap((phase, at, all) =>
      phaseArguments(phase, root, table, at === all.length - 1 ? mounts : undefined),
    ),
    // Back to the original user, in another user namespace that owns none of the mounts.
    ['--', ...(userNamespace ? [unshare, '--user', `--map-user=${uid}`, `--map-group=${gid}`, '--'] : [])],
    [setpriv, `--bounding-set=-all${keep}`, '--inh-caps=-all', '--ambient-caps=-all', '--', ...first],
  ])
}

interface Phase {
  folders: string[]
  files: string[]
  mounts: Mount[]
}

/** Groups mounts into phases: paths on a file system can be created only in a phase after the one that mounts it. */
function phasesOf(mounts: readonly Mount[]): Phase[] {
  const phases: Phase[] = [{ folders: ['.old'], files: [], mounts: [] }]
  const previous: Mount[] = []
  for (const mount of [...mounts, ...devices]) {
    const cover = coverOf(mount.to, previous)
    if (cover && cover.kind !== 'bind' && phases.at(-1)!.mounts.includes(cover))
      phases.push({ folders: [], files: [], mounts: [] })
    const phase = phases.at(-1)!
    // In a folder bound from the host the path already exists.
    if (cover === undefined || cover.kind === 'empty' || cover.kind === 'dev') {
      const list = mount.kind === 'bind' && mount.file ? phase.files : phase.folders
      list.push(mount.to.slice(1))
      if (list === phase.files) phase.folders.push(mount.to.slice(1, mount.to.lastIndexOf('/')) || '.')
    }
    phase.mounts.push(mount)
    previous.push(mount)
  }
  return phases
}

/** The content of /dev besides GPU devices. */
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

/** The last phase completes /dev with a terminal device and then makes the root read-only. */
function phaseArguments(
  { folders, files, mounts }: Phase,
  root: string,
  table: readonly MountEntry[],
  /** Set for the last phase only. */
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
        .map(({ to }) => line(remountSource, root + to, 'none', 'remount,bind,ro,nosuid,nodev')),
      line(remountSource, root, 'none', 'remount,bind,ro,nosuid,nodev'),
    )
  }
  return [[...new Set(folders)].join('\n'), files.join('\n'), lines.join('\n')]
}

/** The fstab(5) lines for this mount, below the folder that becomes the root. */
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
      const readOnly = (entry: MountEntry | undefined) => ['ro,nosuid,nodev', ...mountOptions(entry)].join(',')
      // A read-only remount does not affect the mounts below it.
      const below = table.filter(({ path, type }) => path.startsWith(`${mount.from}/`) && !unreachable.test(type))
      return [
        line(mount.from, to, 'none', `rbind,${readOnly(mountAt(mount.from, table))}`),
        ...below.map(entry =>
          line(remountSource, to + entry.path.slice(mount.from.length), 'none', `remount,bind,${readOnly(entry)}`),
        ),
      ]
    }
  }
}

/** Only their owner may access them, and access may block on a remote machine. */
const unreachable = /^(fuse|autofs)/

/** A source that is mounted nowhere: mount(8) skips sources that it considers mounted already. */
const remountSource = 'again'

const line = (from: string, to: string, type: string, options: string): string =>
  `${escaped(from)} ${escaped(to)} ${type} ${options} 0 0`

/** Escapes separators as fstab(5) requires. */
const escaped = (path: string): string =>
  path.replaceAll(/[ \t\n\\#]/g, sign => `\\${sign.charCodeAt(0).toString(8).padStart(3, '0')}`)
