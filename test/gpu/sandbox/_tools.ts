import { mkdtempSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { findProgram } from '../../../gpu/launcher/program.ts'
import type { SandboxTool } from '../../../gpu/sandbox/level.ts'
import { probeSandbox } from '../../../gpu/sandbox/probe.ts'
import { rebuildPrograms } from '../../../gpu/sandbox/rebuilt.ts'

/** What the probe finds on a machine where only these programs are installed. */
export async function probeWith(programs: readonly string[]) {
  const folder = mkdtempSync(join(tmpdir(), 'infer-path-'))
  try {
    for (const name of programs) {
      const at = findProgram(name, '/usr/bin:/usr/sbin:/bin:/sbin')
      if (at) symlinkSync(at, join(folder, name))
    }
    return await probeSandbox({ PATH: folder })
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** How sandboxes can be made here: with bubblewrap and with the tools of util-linux. Empty where neither works. */
export const toolsHere: SandboxTool[] = (await Promise.all([probeWith(['bwrap']), probeWith(rebuildPrograms)])).flatMap(
  ({ tool }) => (tool ? [tool] : []),
)
