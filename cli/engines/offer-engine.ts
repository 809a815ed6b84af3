import type { Task } from '../../core/schemas/task.ts'
import { presets } from '../../gpu/presets/presets.ts'
import { failureOfThrown } from '../terminal/exit-codes.ts'
import { sizeText } from '../terminal/quantities-text.ts'
import { confirm } from '../terminal/standard-input.ts'
import type { Terminal } from '../terminal/terminal.ts'
import { type EnvironmentKind, environmentKinds } from './environment-kinds.ts'
import { installShown } from './install-shown.ts'
import { releaseKinds } from './releases/release-kinds.ts'

const environmentsByName: Readonly<Record<string, EnvironmentKind>> = environmentKinds

const titleOf = ({ name, source }: EnvironmentKind): string =>
  source ? `${source.title} ${source.version} (${source.license})` : `the environment '${name}'`

/** The Python environment that brings an engine for these tasks; undefined if infer makes none. */
function environmentFor(engine: string, tasks: readonly Task[]) {
  const name = presets.get(engine)?.installation?.(tasks).environments?.[0] ?? engine
  return environmentsByName[name]
}

/**
 * Offers the set-up of an engine that is not installed to a user at a terminal, and runs it. Says in one line how to do it
 * later if the user declines, or if it fails. Does nothing for an engine that infer cannot install, and without a terminal.
 * Rejects only with the reason of the signal.
 */
export async function offerEngine(
  { engine, tasks, dataDir }: { engine: string; tasks: readonly Task[]; dataDir: string },
  terminal: Terminal,
  signal: AbortSignal,
): Promise<void> {
  const release = Object.values(releaseKinds).find(({ name }) => name === engine)
  const environment = release ? undefined : environmentFor(engine, tasks)
  if (!terminal.interactive || (!release && !environment)) return
  const command = `infer engine setup ${(release ?? environment)!.name}`
  // No server is asked for a release without a yes.
  const question = release
    ? `Install ${engine} from the releases of ${release.repository} now?`
    : `Install ${titleOf(environment!)} now? It takes about ${sizeText(environment!.bytes)} on the disk.`
  if (!(await confirm(question, true, terminal, signal))) return terminal.remark(`Later: ${command}`)
  try {
    if (release) {
      const { setUpRelease } = await import('./releases/set-up-release.ts')
      await setUpRelease(release, { dataDir }, terminal, signal)
    } else {
      const { program } = await installShown(environment!, { dataDir }, terminal, signal)
      for (const sentence of program?.warnings ?? []) terminal.warn(sentence)
      terminal.print(`The engine '${engine}' is installed.`)
    }
  } catch (thrown) {
    signal.throwIfAborted()
    terminal.warn(`${failureOfThrown(thrown).message}\nTry again with: ${command}`)
  }
}
