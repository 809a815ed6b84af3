import { openCpu } from '../../core/cpu/cpu.ts'
import { openRegistry } from '../../core/models/registry.ts'
import { openPreparation } from '../../core/tasks/preparation.ts'
import { openGrantedEngines } from '../../gpu/granted-engines.ts'
import { traitsOf } from '../../gpu/presets/presets.ts'
import type { FrontParts } from '../../server/fronts/local-work.ts'

/** What a gateway process has of the engines, the models and the threads. */
export const frontParts: FrontParts = {
  openRegistry: ({ region }, models) =>
    openRegistry({ models, toys: false, defaults: () => [], traits: traitsOf, region }),
  openEngines: openGrantedEngines,
  openCpu() {
    const threads = openCpu({ threads: 1 })
    return { ...threads, ...openPreparation(threads) }
  },
}
