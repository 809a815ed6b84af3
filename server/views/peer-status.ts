import type { z } from 'zod'
import type { PeerSnapshot } from '../../core/models/peers/peers.ts'
import { integer, namedObject, nullableInteger, nullableString, string } from '../../core/schemas/fields.ts'
import { seconds, viewOf } from './view-of.ts'

/** One peer in `GET /api/system/status`. */
export const PeerStatus = namedObject(
  'PeerStatus',
  'Another infer whose models are offered here: see `peers` of `infer.yaml`.',
  {
    name: string('Name of the peer. Its models are `<name>/<their name there>`.'),
    url: string('Address of the other infer.'),
    models: integer('How many names of models it lists to this server, or did when it answered last.'),
    listed_at: nullableInteger('Unix seconds at which it listed them last; null before.'),
    fault: nullableString('Why its models cannot be used now, as a sentence; null if they can.'),
  },
)

/** A peer in the shape of the API. */
export const peerStatus = (peer: PeerSnapshot): z.input<typeof PeerStatus> =>
  viewOf(PeerStatus, peer, { listed_at: seconds(peer.listedAt) })
