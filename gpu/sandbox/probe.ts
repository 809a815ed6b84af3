import { realpathSync } from 'node:fs'
import { tmpdir } from 'node:os'
import type { SandboxSupport, SandboxTool } from './level.ts'
import { mountScriptPrograms } from './mount-script.ts'
import { tryShell } from './probe-wrapper.ts'
import { findProgram } from './program.ts'
import { sandboxWrapper } from './sandbox-wrapper.ts'
import { readSystem } from './system.ts'
import { viewOf } from './view.ts'

type Candidate = Omit<SandboxTool, 'programs' | 'network'>

/** Candidates in order of preference. Only root can create sandboxes without a user namespace. */
function candidates(isRoot: boolean): Candidate[] {
  const direct: Candidate[] = isRoot
    ? [
        { name: 'bubblewrap', userNamespace: false, ownProc: true },
        { name: 'unshare', userNamespace: false, ownProc: true },
      ]
    : []
  const withUserNamespace = (ownProc: boolean): Candidate[] => [
    { name: 'bubblewrap', userNamespace: true, ownProc },
    { name: 'unshare', userNamespace: true, ownProc },
  ]
  return [...direct, ...withUserNamespace(true), ...withUserNamespace(false)]
}

const programsOf = { bubblewrap: ['bwrap'], unshare: mountScriptPrograms }

/**
 * Finds out how sandboxes can be created on this machine: starts a shell in one, which checks that it is enforced.
 * Takes about 20 ms if the first candidate works. Never throws.
 */
export async function probeSandbox({ PATH }: { PATH?: string | undefined }): Promise<SandboxSupport> {
  const path = PATH ?? '/usr/local/bin:/usr/bin:/bin'
  const faults = new Map<string, string>()
  for (const network of [true, false])
    for (const candidate of candidates(process.getuid?.() === 0)) {
      const programs = programsFor(candidate.name, path)
      const tool = typeof programs === 'string' ? undefined : { ...candidate, programs, network }
      const why = tool ? await attempt(tool, path) : (programs as string)
      if (tool && why === null) return { tool }
      faults.set(`${candidate.name}: ${why}`, '')
    }
  return { tool: null, why: [...faults.keys()].join('; ') }
}

/** Absolute paths of the tool's programs, or a sentence about a missing one. */
function programsFor(name: SandboxTool['name'], path: string): Record<string, string> | string {
  const paths = programsOf[name].map(program => [program, findProgram(program, `${path}:/usr/sbin:/sbin`)] as const)
  const missing = paths.find(([, resolved]) => resolved === undefined)
  if (missing) return `${missing[0]} is not installed`
  // Some are started inside the sandbox, where a symbolic link may be broken.
  return Object.fromEntries(paths.map(([program, resolved]) => [program, realpathSync(resolved!)]))
}

/** Exits with 42 if the sandbox is enforced; any other status means it is not, or a system program does not run. */
const check = 'test $$ -le 99 && test -r /proc/self/status && test -c /dev/null && test ! -e /etc/shadow && exit 42'

async function attempt(tool: SandboxTool, path: string): Promise<string | null> {
  try {
    const mounts = viewOf({
      level: 'strict',
      ownProc: tool.ownProc,
      system: readSystem(),
      secret: [],
      homes: [],
      read: [],
      write: [],
    })
    const wrapper = sandboxWrapper(tool, mounts, { network: !tool.network, root: realpathSync(tmpdir()) })
    return await tryShell(wrapper, check, path)
  } catch (cause) {
    return String(cause)
  }
}
