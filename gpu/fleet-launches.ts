import { openLaunches } from './launcher/launches.ts'
import { type LocalLauncherOptions, openLocalLauncher } from './launcher/local.ts'
import { openOutputs } from './launcher/outputs.ts'
import { openUpstreamLauncher } from './launcher/upstream.ts'

/** Follows the engines of this machine, and those that run elsewhere and are only called. */
export async function openFleetLaunches(options: LocalLauncherOptions) {
  const { log } = options
  const outputs = openOutputs()
  const launcher = await openLocalLauncher(options)
  const [launches, upstreams] = await Promise.all([
    openLaunches({ launcher, outputs, log }),
    openLaunches({ launcher: openUpstreamLauncher(), outputs, log }),
  ])
  return {
    outputs,
    launches,
    upstreams,
    /** Whether processes of an earlier run were ended. */
    hasSwept: launcher.swept.ended > 0,
    async close(): Promise<void> {
      await Promise.all([launches.close(), upstreams.close()])
    },
  }
}
