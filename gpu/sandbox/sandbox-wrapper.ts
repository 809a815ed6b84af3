import { keptCapabilities, type SandboxTool } from './level.ts'
import { type Mount, readMountTable } from './mount.ts'
import { mountScript } from './mount-script.ts'
import { namespaceWrapper, replaced, type Wrapper } from './wrapper.ts'

/**
 * Returns the command that starts an engine with these mounts, using this machine's sandbox tool. `root` is an empty
 * folder used as a temporary mount point; it stays empty.
 */
export function sandboxWrapper(
  tool: SandboxTool,
  mounts: readonly Mount[],
  { network, root }: { network: boolean; root: string },
): Wrapper {
  if (tool.name === 'bubblewrap') return bubblewrap(tool, mounts, { network })
  const [uid, gid] = [process.getuid?.() ?? 0, process.getgid?.() ?? 0]
  return mountScript(tool, mounts, { network, root, uid, gid, table: readMountTable() })
}

/** Returns the bubblewrap command that starts an engine with these mounts. Pure. */
export function bubblewrap(
  { programs, userNamespace }: Pick<SandboxTool, 'programs' | 'userNamespace'>,
  mounts: readonly Mount[],
  { network }: { network: boolean },
): Wrapper {
  return namespaceWrapper(
    'bubblewrap',
    ['bwrap'],
    [
      [programs.bwrap ?? 'bwrap', '--die-with-parent', '--unshare-pid', '--unshare-ipc', '--unshare-uts'],
      network ? [] : ['--unshare-net'],
      userNamespace ? ['--unshare-user'] : [],
      mounts.flatMap(argumentsOf),
      mounts.flatMap(mount => (mount.kind === 'empty' && mount.sealed ? ['--remount-ro', mount.to] : [])),
      ['--remount-ro', '/', '--cap-drop', 'ALL'],
      // In a user namespace these capabilities would apply to the namespace only.
      userNamespace ? [] : keptCapabilities.flatMap(name => ['--cap-add', `CAP_${name.toUpperCase()}`]),
      ['--', ...replaced],
    ],
  )
}

const binds = { read: '--ro-bind', write: '--bind', device: '--dev-bind' }

function argumentsOf(mount: Mount): string[] {
  switch (mount.kind) {
    case 'bind':
      return [binds[mount.mode], mount.from, mount.to]
    case 'empty':
      return ['--perms', '1777', '--tmpfs', mount.to]
    case 'proc':
      return mount.own ? ['--proc', mount.to] : ['--bind', '/proc', mount.to]
    case 'dev':
      return ['--dev', mount.to]
  }
}
