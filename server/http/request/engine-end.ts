import type { IncomingMessage } from 'node:http'
import type { EngineEnd } from '../../../core/jobs/suspects.ts'

const engineEnds = new WeakMap<IncomingMessage, EngineEnd>()

/** How the engine ended under a request in the gateway process that has passed it on; undefined if none did. */
export const engineEndBefore = (req: IncomingMessage): EngineEnd | undefined => engineEnds.get(req)

/** Sets it, for a request that a gateway process has passed on. */
export const setEngineEnd = (req: IncomingMessage, end: EngineEnd): void => void engineEnds.set(req, end)
