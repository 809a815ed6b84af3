import type { Log } from '../../core/log.ts'
import type { Model } from '../../core/models/model.ts'
import { openOwnCommand } from './own-command.ts'
import { openServerEngines } from './server-engines.ts'
import { openServerGpuSetup } from './server-gpu-setup.ts'
import { openServerModels, openServerPull } from './server-models.ts'

/** Opens what changes this machine by commands of infer: its models, the backend for its GPUs, and its engines. */
export function openMachineAdministration({
  dataDir,
  config,
  configured,
  log,
}: {
  dataDir: string
  /** The configuration file. */
  config: string
  /** The configured models. */
  configured: () => readonly Model[]
  log: Log
}) {
  const run = openOwnCommand(dataDir)
  const models = openServerModels({ run, config, dataDir, configured, log })
  const gpuSetup = openServerGpuSetup({ run, log })
  const engineSetups = openServerEngines({ run, config, log })
  return {
    owners: { models, modelPull: openServerPull(run, config), gpuSetup, engineSetups },
    /** Ends what runs. */
    close(): void {
      for (const one of [models, gpuSetup, engineSetups]) one.close()
    },
  }
}
