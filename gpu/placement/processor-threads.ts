import type { ProcessorThreads } from '../../core/models/model-plan.ts'

/**
 * Chooses the threads with which an engine computes on the processor. Pure. A second thread on the same core makes a model
 * that reads all weights for each token no faster, and the server needs a thread of its own. `others`: engines that compute
 * on the processor already. If each took all cores, all of them would wait for each other.
 */
export function processorThreads(
  configured: number | undefined,
  { cores, physicalCores: physical, others }: { cores: number; physicalCores: number; others: number },
): ProcessorThreads {
  if (configured !== undefined) return { count: configured, reason: "its setting 'threads'" }
  const all = Math.max(1, Math.min(physical, cores - 1))
  const one = all < physical ? ' but one for the server' : ''
  const count = Math.max(1, Math.ceil(all / (others + 1)))
  const shared = others > 0 ? `, shared with ${others === 1 ? 'another engine' : `${others} other engines`}` : ''
  return { count, reason: `${physical === 1 ? 'the only core' : `the ${physical} cores${one}`}${shared}` }
}
