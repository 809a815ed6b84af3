import { realpathSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { tryShell } from '../launcher/probe.ts'
import { findProgram } from '../launcher/program.ts'
import type { SandboxSupport, SandboxTool } from './level.ts'
import { rebuildPrograms } from './rebuilt.ts'
import { sandboxed } from './sandboxed.ts'
import { readSystem } from './system.ts'
import { viewOf } from './view.ts'

type Candidate = Omit<SandboxTool, 'programs' | 'network'>

/** What to try, best first. Without a user namespace only root can do it. */
function candidates(isRoot: boolean): Candidate[] {
  const direct: Candidate[] = isRoot
    ? [
        { name: 'bubblewrap', userNamespace: false, ownProc: true },
        { name: 'unshare', userNamespace: false, ownProc: true },
      ]
    : []
  const own = (ownProc: boolean): Candidate[] => [
    { name: 'bubblewrap', userNamespace: true, ownProc },
    { name: 'unshare', userNamespace: true, ownProc },
  ]
  return [...direct, ...own(true), ...own(false)]
}

const programsOf = { bubblewrap: ['bwrap'], unshare: rebuildPrograms }

/**
 * Finds out how sandboxes can be made on this machine by starting a shell in one, which looks whether it is in force.
 * Takes some 20 ms where the first way works. Never throws.
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

/** Where the programs are, or which is missing, as a sentence. */
function programsFor(name: SandboxTool['name'], path: string): Record<string, string> | string {
  const places = programsOf[name].map(program => [program, findProgram(program, `${path}:/usr/sbin:/sbin`)] as const)
  const missing = places.find(([, resolved]) => resolved === undefined)
  if (missing) return `${missing[0]} is not installed`
  // Some of them are started from inside, where a link may lead nowhere.
  return Object.fromEntries(places.map(([program, resolved]) => [program, realpathSync(resolved!)]))
}

/** Fails with other statuses when a program of the system does not run. */
const look = 'test $$ -le 99 && test -r /proc/self/status && test -c /dev/null && test ! -e /etc/shadow && exit 42'

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
    const wrapper = sandboxed(tool, mounts, { network: !tool.network, root: realpathSync(tmpdir()) })
    return await tryShell(wrapper, look, path)
  } catch (cause) {
    return String(cause)
  }
}
