import { mkdtempSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { SandboxTool } from '../../../gpu/sandbox/level.ts'
import { mountScriptPrograms } from '../../../gpu/sandbox/mount-script.ts'
import { probeSandbox } from '../../../gpu/sandbox/probe.ts'
import { findProgram } from '../../../gpu/sandbox/program.ts'

/** The result of the probe on a machine where only these programs are installed. */
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

/** The tools that can create sandboxes here: bubblewrap and util-linux. Empty where neither works. */
export const toolsHere: SandboxTool[] = (
  await Promise.all([probeWith(['bwrap']), probeWith(mountScriptPrograms)])
).flatMap(({ tool }) => (tool ? [tool] : []))
