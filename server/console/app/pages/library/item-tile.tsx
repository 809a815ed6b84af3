import { AudioLines, Film } from 'lucide-react'
import { memo } from 'react'
import { Link } from 'wouter'
import type { Schema } from '../../api/client.ts'
import { ownUrl } from '../../components/addresses.ts'
import { durationText } from '../../components/format.ts'
import { Time } from '../../components/time.tsx'
import { libraryText as text } from '../../text/library.ts'

export type LibraryItem = Schema<'LibraryItem'>

/** One file in the grid. Its address is new with each read, so only another file or time draws it again. */
export const ItemTile = memo(
  function ItemTile({ item, address }: { item: LibraryItem; address: string }) {
    const { id, kind, prompt, thumbnail_url, file, duration_seconds, created_at } = item
    const picture = thumbnail_url ?? (kind === 'image' ? file.url : undefined)
    const Icon = kind === 'audio' ? AudioLines : Film
    return (
      <li className="min-w-0">
        <Link
          href={`/library/${id}${address && `?${address}`}`}
          className="bg-surface border-line hover:border-control block overflow-hidden rounded-lg border"
        >
          <span className="bg-raised relative grid aspect-square place-items-center overflow-hidden">
            {picture ? (
              <img src={ownUrl(picture)} alt="" loading="lazy" decoding="async" className="size-full object-cover" />
            ) : (
              <Icon aria-hidden className="text-muted size-10" />
            )}
            {duration_seconds !== null && (
              <span className="bg-surface absolute right-1 bottom-1 rounded px-1.5 text-xs tabular-nums">
                {durationText(duration_seconds * 1_000)}
              </span>
            )}
          </span>
          <span className="block px-2 py-1.5">
            <span className="block truncate">
              <span className="sr-only">{text.open(text.kindNames[kind]!)} </span>
              {prompt || text.noPrompt}
            </span>
            <span className="text-muted block truncate text-xs">
              <Time at={created_at} />
            </span>
          </span>
        </Link>
      </li>
    )
  },
  (before, after) => before.item.id === after.item.id && before.address === after.address,
)
