import type { Wrapper } from '../launcher/wrapper.ts'
import { bubblewrapped } from './bubblewrap.ts'
import type { SandboxTool } from './level.ts'
import type { Mount } from './mount.ts'
import { readMountTable } from './mount-table.ts'
import { rebuilt } from './rebuilt.ts'

/**
 * How an engine is started in this view of the file system with the tool of this machine. `root` is an empty folder on
 * which the view may be built; nothing is left in it.
 */
export function sandboxed(
  tool: SandboxTool,
  mounts: readonly Mount[],
  { network, root }: { network: boolean; root: string },
): Wrapper {
  if (tool.name === 'bubblewrap') return bubblewrapped(tool, mounts, { network })
  const [uid, gid] = [process.getuid?.() ?? 0, process.getgid?.() ?? 0]
  return rebuilt(tool, mounts, { network, root, uid, gid, table: readMountTable() })
}
