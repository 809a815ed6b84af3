import { realpathSync } from 'node:fs'
import { constants } from 'node:os'
import type { SandboxRequirements, SandboxSupport } from '../../gpu/sandbox/level.ts'
import type { ProgramRun } from '../../gpu/sandbox/program.ts'
import { openSandbox } from '../../gpu/sandbox/sandbox.ts'
import { exitStatus, noWrapper, type Wrapper, wrapCommand } from '../../gpu/sandbox/wrapper.ts'

interface ConfinementOptions {
  /** The data directory, which the sandbox hides. */
  dataDir: string
  /** How engines are confined on this machine. */
  sandbox: SandboxSupport
  host: Readonly<Record<string, string | undefined>>
  env: Readonly<Record<string, string>>
  /** A folder for the files that the program writes. */
  home: string
  devices: SandboxRequirements['devices']
}

/** Returns the function that puts a command into the sandbox of engines, where there is one. `read` are paths that it may read. */
export async function openTrialConfinement({ dataDir, sandbox, host, env, home, devices }: ConfinementOptions) {
  const { wrapperFor } = await openSandbox({ dataDir: realpathSync(dataDir), support: sandbox, host })
  return async (argv: readonly string[], read: readonly string[] = []) => {
    const requirements = { level: 'files' as const, required: false, read, write: [], programs: [], devices }
    const write = [realpathSync(home)]
    const confined = await wrapperFor({ requirements, argv, env, configuredVariables: [], write, read: [] })
    const wrapper = confined?.wrapper ?? noWrapper
    return { ...wrapCommand(wrapper, argv), wrapper }
  }
}

/** The run with the signal that ended the program, which a sandbox reports by an exit code. */
export function withSignal(run: ProgramRun, wrapper: Wrapper): ProgramRun {
  const status = exitStatus(wrapper, run.exitCode ?? null, run.signal ?? null, constants.signals)
  return status in constants.signals ? { ...run, exitCode: undefined, signal: status } : run
}
