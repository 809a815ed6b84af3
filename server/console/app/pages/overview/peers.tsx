import type { Schema } from '../../api/client.ts'
import { sentenceText } from '../../components/format.ts'
import { Time } from '../../components/time.tsx'
import { overviewText } from '../../text/overview.ts'

/** Other infers whose models are offered here, and why those of one cannot be used. */
export function Peers({ peers }: { peers: readonly Schema<'PeerStatus'>[] }) {
  return (
    <ul className="grid gap-3 lg:grid-cols-2">
      {peers.map(({ name, url, models, listed_at: listedAt, fault }) => (
        <li key={name} className="border-line bg-surface min-w-0 rounded-lg border p-3">
          <div className="flex flex-wrap justify-between gap-x-3">
            <h3 className="font-medium">{name}</h3>
            <p className="text-muted break-all">{url}</p>
          </div>
          <p className="text-muted tabular-nums">
            {models === 0 && listedAt === null ? overviewText.peerUnheard : overviewText.peerModels(models)}
            {fault !== null && listedAt !== null && (
              <>
                {' · '}
                {overviewText.peerHeard} <Time at={listedAt} />
              </>
            )}
          </p>
          {fault !== null && <p className="text-warning mt-1 text-xs break-words">{sentenceText(fault)}</p>}
        </li>
      ))}
    </ul>
  )
}
