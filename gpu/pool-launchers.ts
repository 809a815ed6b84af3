import { Failure } from '../core/failure.ts'
import type { OpenPoolLauncher } from './pool-launches.ts'

/** Opens the launcher of a pool, by its kind. */
export const openPoolLauncher: OpenPoolLauncher = async ({ settings, host, ...options }) => {
  if (settings.kind === 'ssh') {
    const { openSshLauncher } = await import('./launcher/ssh/ssh.ts')
    return await openSshLauncher({ ...options, settings, ssh: { command: ['ssh'], env: host } })
  }
  throw new Failure(
    'worker_error',
    `The pool '${options.pool}' cannot be used: this build has no launcher for '${settings.kind}'.`,
  )
}
