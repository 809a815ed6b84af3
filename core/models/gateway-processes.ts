import { readdirSync } from 'node:fs'
import { availableParallelism } from 'node:os'

/** Up to so many cores one process is enough. */
const coresForOne = 4
/** Cores that the engine of a card keeps busy. */
const coresOfCard = 2
/** One process for so many of the other cores: engines on the processor, and programs beside, use them too. */
const coresOfProcess = 4
const most = 8

/** How many gateway processes a machine gets whose `infer.yaml` does not say. */
export const gatewayProcessesFor = ({ cores, cards }: { cores: number; cards: number }): number =>
  cores <= coresForOne ? 1 : Math.max(1, Math.min(most, Math.floor((cores - coresOfCard * cards) / coresOfProcess)))

/** The same of this machine. */
export const gatewayProcessesHere = (): number =>
  process.platform === 'linux' ? gatewayProcessesFor({ cores: availableParallelism(), cards: nvidiaCards() }) : 1

/** The NVIDIA cards that the system shows to this process, without a program that may take seconds. */
function nvidiaCards(): number {
  try {
    return readdirSync('/dev').filter(name => /^nvidia\d+$/.test(name)).length
  } catch {
    return 0
  }
}
