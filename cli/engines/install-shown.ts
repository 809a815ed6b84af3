import { hostEnvironment } from '../../core/config.ts'
import type { Terminal } from '../terminal/terminal.ts'
import { type EnvironmentKind, processorOnlyBytes, torchBuild } from './environment-kinds.ts'

interface ShownOptions {
  dataDir: string
  cuda?: string
  cpu?: boolean
  indexUrl?: string
  torchIndexUrl?: string
}

/** Makes a Python environment and shows each step in the terminal. Rejects like `installEnvironment`. */
export async function installShown(
  kind: EnvironmentKind,
  options: ShownOptions,
  terminal: Terminal,
  signal: AbortSignal,
): Promise<{ folder: string; packages: string }> {
  const { installEnvironment } = await import('./install-environment.ts')
  let step = ''
  return await installEnvironment({
    ...options,
    kind,
    torch: torchBuild(options),
    bytes: options.cpu ? processorOnlyBytes : undefined,
    environment: hostEnvironment(),
    signal,
    onStep(text) {
      step = text
      terminal.waiting(text)
    },
    onLine: line => terminal.progress(`${step}: ${line}`.slice(0, (terminal.stderr.columns ?? 80) - 1)),
  })
    .catch((thrown: unknown) => {
      if (signal.aborted) terminal.remark('Stopped. Run the same command to continue.')
      throw thrown
    })
    .finally(() => terminal.progress(''))
}
