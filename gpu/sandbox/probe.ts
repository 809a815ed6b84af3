import { realpathSync } from 'node:fs'
import { tmpdir } from 'node:os'
import type { SandboxSupport, SandboxTool } from './level.ts'
import { mountScriptPrograms } from './mount-script.ts'
import { tryShell } from './probe-wrapper.ts'
import { findPrograms } from './program.ts'
import { sandboxWrapper } from './sandbox-wrapper.ts'
import { readSystem } from './system.ts'
import { viewOf } from './view.ts'

type Candidate = Omit<SandboxTool, 'programs' | 'network'>

/** Candidates in order of preference. Only root can create sandboxes without a user namespace. */
const candidates = (isRoot: boolean): Candidate[] =>
  [
    ...(isRoot ? [{ userNamespace: false, ownProc: true }] : []),
    { userNamespace: true, ownProc: true },
    { userNamespace: true, ownProc: false },
  ].flatMap(kind => (['bubblewrap', 'unshare'] as const).map(name => ({ name, ...kind })))

const programsOf = { bubblewrap: ['bwrap'], unshare: mountScriptPrograms }

/**
 * Finds out how sandboxes can be created on this machine: starts a shell in one, which checks that it is enforced.
 * Takes about 20 ms if the first candidate works. Never throws.
 */
export async function probeSandbox({ PATH }: { PATH?: string }): Promise<SandboxSupport> {
  const path = PATH ?? '/usr/local/bin:/usr/bin:/bin'
  const faults = new Set<string>()
  for (const network of [true, false])
    for (const candidate of candidates(process.getuid?.() === 0)) {
      const programs = programsFor(candidate.name, path)
      const tool = typeof programs === 'string' ? undefined : { ...candidate, programs, network }
      const why = tool ? await attempt(tool, path) : (programs as string)
      if (tool && why === null) return { tool }
      faults.add(`${candidate.name}: ${why}`)
    }
  return { tool: null, why: [...faults].join('; ') }
}

/** Absolute paths of the tool's programs, or a sentence about a missing one. */
function programsFor(name: SandboxTool['name'], path: string): Record<string, string> | string {
  const paths = findPrograms(programsOf[name], `${path}:/usr/sbin:/sbin`)
  if (typeof paths === 'string') return paths
  // Some are started inside the sandbox, where a symbolic link may be broken.
  return Object.fromEntries([...paths].map(([program, file]) => [program, realpathSync(file)]))
}

/** Exits with 42 if the sandbox is enforced; any other status means it is not, or a system program does not run. */
const check = 'test $$ -le 99 && test -r /proc/self/status && test -c /dev/null && test ! -e /etc/shadow && exit 42'

async function attempt(tool: SandboxTool, path: string): Promise<string | null> {
  try {
    const { ownProc } = tool
    const nothing = { secret: [], homes: [], read: [], write: [] }
    const mounts = viewOf({ ownProc, system: await readSystem(), ...nothing })
    const wrapper = sandboxWrapper(tool, mounts, { network: !tool.network, root: realpathSync(tmpdir()) })
    return await tryShell(wrapper, check, path)
  } catch (cause) {
    return String(cause)
  }
}
