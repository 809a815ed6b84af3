import { bubblewrap } from './bubblewrap.ts'
import type { SandboxTool } from './level.ts'
import type { Mount } from './mount.ts'
import { mountScript } from './mount-script.ts'
import { readMountTable } from './mount-table.ts'
import type { Wrapper } from './wrapper.ts'

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
