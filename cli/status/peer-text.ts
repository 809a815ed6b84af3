import type { Api } from '../client/client.ts'
import { printable } from '../terminal/styled-line.ts'

/** Says in a line what another infer offers here, or why it offers nothing now. */
export function peerText({ name, url, models, listed_at, fault }: Api['PeerStatus']): string {
  const count = `${models} ${models === 1 ? 'model' : 'models'}`
  if (fault === null)
    return `peer ${printable(name)} (${printable(url)}): ${listed_at === null ? 'has not answered yet' : count}`
  // A fault names the peer and its address itself.
  return printable(fault) + (models > 0 ? ` ${count} of it ${models === 1 ? 'is' : 'are'} known.` : '')
}
