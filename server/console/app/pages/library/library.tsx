import { Copy, Download, Recycle, Trash2 } from 'lucide-react'
import { memo, useDeferredValue, useState } from 'react'
import { Link, useLocation, useRoute } from 'wouter'
import { api, at, refresh, type Schema, useAnswer, usePages, useSession } from '../../api/client.ts'
import { useLiveRefresh } from '../../api/live.ts'
import { ownUrl } from '../../components/addresses.ts'
import { announce } from '../../components/announcements.tsx'
import { Button, ButtonLink, buttonClass } from '../../components/button.tsx'
import { Confirm, Dialog } from '../../components/dialog.tsx'
import { optionsOf, SearchField, SelectField } from '../../components/fields.tsx'
import { dateText, durationText, sizeText } from '../../components/format.ts'
import { KindIcon } from '../../components/marks.tsx'
import { modelOption } from '../../components/options.tsx'
import { Empty, Facts, MoreButton, PageHeading, Queried } from '../../components/page.tsx'
import { PickerField } from '../../components/picker-field.tsx'
import { Media } from '../../components/result/media.tsx'
import { Time } from '../../components/time.tsx'
import { useAddress } from '../../components/use-address.ts'
import { libraryText as text } from '../../text/library.ts'
import { shellText } from '../../text/shell.ts'
import { makesFiles } from '../../text/tasks.ts'

const pageSize = 40

/** Images, videos and audio that the organization has made. */
export default function Library() {
  const [search, change] = useAddress()
  const [, go] = useLocation()
  const [, params] = useRoute('/library/:id')
  const filter = { q: search.get('q') ?? '', kind: search.get('kind') ?? '', model: search.get('model') ?? '' }
  const models = useAnswer(['library', 'models'], () => api.GET('/std/v1/models'), { staleTime: 60_000 })
  const makers = (models.data?.data ?? []).filter(({ tasks }) => tasks.some(makesFiles))
  const query = search.toString()
  const back = `/library${query && `?${query}`}`
  return (
    <>
      <PageHeading title={shellText.pages.library} about={text.about} />
      <div className="mb-4 grid items-end gap-3 sm:grid-cols-[2fr_1fr_1fr]">
        <SearchField label={text.search} value={filter.q} change={q => change({ q })} />
        <SelectField
          label={text.kind}
          value={filter.kind}
          options={optionsOf(text.kinds)}
          change={kind => change({ kind })}
        />
        <PickerField
          label={text.model}
          value={filter.model}
          none={text.allModels}
          choices={makers.map(({ id }) => modelOption(id))}
          change={model => change({ model })}
        />
      </div>
      <Items filter={filter} query={query} />
      {params && <ItemDialog id={params.id} close={() => go(back)} />}
    </>
  )
}

function Items({ filter, query: address }: { filter: Record<'q' | 'kind' | 'model', string>; query: string }) {
  // While somebody types, the list of the words before stays.
  const { q, kind, model } = useDeferredValue(filter)
  const query = usePages(
    ['library', 'items', q, kind, model],
    after => {
      const wanted = {
        q: q || undefined,
        kind: (kind || undefined) as LibraryItem['kind'],
        model_id: model || undefined,
      }
      return api.GET('/api/library', { params: { query: { limit: pageSize, after, ...wanted } } })
    },
    true,
  )
  useLiveRefresh(['job.completed'], ['library', 'items'])
  return (
    <Queried query={query} lines={8}>
      {({ pages }) => {
        const items = pages.flatMap(page => page.items)
        if (items.length === 0 && !query.hasNextPage) return <Nothing filtered={q + kind + model !== ''} />
        return (
          <>
            <ul aria-label={text.list} className="grid grid-cols-2 gap-3 sm:grid-cols-3 lg:grid-cols-4 xl:grid-cols-5">
              {items.map(item => (
                <ItemTile key={item.id} item={item} address={address} />
              ))}
            </ul>
            <div className="mt-4 text-center empty:hidden">
              <MoreButton query={query} />
            </div>
          </>
        )
      }}
    </Queried>
  )
}

function Nothing({ filtered }: { filtered: boolean }) {
  const { can } = useSession()
  return filtered ? (
    <Empty title={text.notFound}>
      <p>{text.notFoundHint}</p>
    </Empty>
  ) : (
    <Empty title={text.empty}>
      <p>{text.emptyHint}</p>
      {can('user:write') && <ButtonLink href="/playground" label={text.toPlayground} />}
    </Empty>
  )
}

export type LibraryItem = Schema<'LibraryItem'>

/** One file in the grid. Its address is new with each read, so only another file or time draws it again. */
const ItemTile = memo(
  function ItemTile({ item, address }: { item: LibraryItem; address: string }) {
    const { id, kind, prompt, thumbnail_url, file, duration_seconds, created_at } = item
    const picture = thumbnail_url ?? (kind === 'image' ? file.url : undefined)
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
              <KindIcon kind={kind} className="size-10" />
            )}
            {duration_seconds !== null && (
              <span className="bg-surface absolute right-1 bottom-1 rounded px-1.5 text-xs tabular-nums">
                {durationText(duration_seconds * 1_000)}
              </span>
            )}
          </span>
          <span className="block px-2 py-1.5">
            <span className="block truncate">
              <span className="sr-only">{text.open(text.kindNames[kind])} </span>
              {prompt || text.noPrompt}
            </span>
            <span className="text-muted flex items-center gap-1.5 truncate text-xs">
              <KindIcon kind={kind} className="size-3.5" />
              <Time at={created_at} />
            </span>
          </span>
        </Link>
      </li>
    )
  },
  (before, after) => before.item.id === after.item.id && before.address === after.address,
)

/** One file: shown whole, with what made it and what can be done with it. */
function ItemDialog({ id, close }: { id: string; close: () => void }) {
  const query = useAnswer(['library', 'item', id], () => api.GET('/api/library/{id}', at({ id })))
  return (
    <Dialog title={query.data?.file.file_name ?? text.list} close={close} wide>
      <Queried query={query} gone={text.gone}>
        {item => <Item item={item} close={close} />}
      </Queried>
    </Dialog>
  )
}

function Item({ item, close }: { item: LibraryItem; close: () => void }) {
  const { can } = useSession()
  const [deleting, setDeleting] = useState(false)
  const { id, kind, file, prompt, job_id } = item
  const url = ownUrl(file.url)
  return (
    <>
      <Media
        kind={kind}
        url={url}
        label={prompt || text.noPrompt}
        className="border-line mx-auto max-h-[50dvh] max-w-full rounded-md border"
        whole
      />
      <div className="flex flex-wrap gap-2">
        <a href={url} download={file.file_name} className={buttonClass({ primary: true })}>
          <Download aria-hidden className="size-4" />
          {text.download}
        </a>
        {can('user:write') && (
          <>
            <ButtonLink href={`/playground?file=${id}`} icon={Recycle} label={text.reuse} />
            <ButtonLink href={`/playground?job=${job_id}`} icon={Copy} label={text.repeat} />
            <Button danger icon={Trash2} onClick={() => setDeleting(true)} label={text.delete} />
          </>
        )}
      </div>
      <ItemFacts item={item} />
      {deleting && (
        <Confirm
          title={text.deleteTitle}
          action={text.delete}
          close={() => setDeleting(false)}
          act={async () => {
            await api.DELETE('/api/library/{id}', at({ id }))
            announce('good', text.deleted)
            void refresh('library', 'items')
            close()
          }}
        >
          {text.deleteSentence}
        </Confirm>
      )}
    </>
  )
}

function ItemFacts({ item }: { item: LibraryItem }) {
  const { prompt, seed, model_id, job_id, created_at, expires_at, file, width, height, duration_seconds } = item
  return (
    <Facts
      className="grid grid-cols-[auto_1fr] gap-x-6 gap-y-1.5 whitespace-pre-wrap"
      rows={[
        [text.prompt, prompt || text.noPrompt],
        [text.model, model_id],
        [text.seed, seed],
        [text.size, `${width && height ? `${width} × ${height}, ` : ''}${sizeText(file.file_size)}`],
        [text.length, duration_seconds !== null && lengthText(item, duration_seconds)],
        [text.made, dateText(created_at)],
        [text.expires, expires_at === null ? text.forever : dateText(expires_at)],
        [
          text.job,
          <Link key="job" href={`/jobs/${job_id}`} className="text-accent font-mono text-xs break-all underline">
            {job_id}
          </Link>,
        ],
      ]}
    />
  )
}

function lengthText({ num_frames, fps }: LibraryItem, seconds: number): string {
  const length = durationText(seconds * 1_000)
  return num_frames && fps
    ? `${length}, ${text.frames(String(num_frames), String(Math.round(fps * 100) / 100))}`
    : length
}
