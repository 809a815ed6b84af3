import { keepPreviousData } from '@tanstack/react-query'
import { Plus } from 'lucide-react'
import { api, type Schema, useAnswer, useSession } from '../../api/client.ts'
import { useLiveRefresh } from '../../api/live.ts'
import { Button } from '../../components/button.tsx'
import { Empty, GuideLink, PageHeading, Queried } from '../../components/page.tsx'
import { PanelTable, RowLink, WithPanel } from '../../components/panel.tsx'
import { columnsOf } from '../../components/table.tsx'
import { Time } from '../../components/time.tsx'
import { useAddress } from '../../components/use-address.ts'
import { batchesText as text } from '../../text/batches.ts'
import { shellText } from '../../text/shell.ts'
import { BatchPanel } from './batch-panel.tsx'
import { BatchProgress, BatchState, isLive, liveMs } from './batch-parts.tsx'
import { CreateBatch } from './create-batch.tsx'

type Batch = Schema<'Batch'>

/** The beginning of an id, which says what it is of, and its end, by which it differs from others. */
const shortId = (id: string): string => `${id.slice(0, 6)}…${id.slice(-8)}`

const columns = columnsOf<Batch, keyof typeof text.columns>(text.columns, {
  batch: ({ id }) => (
    <RowLink param="batch" id={id}>
      <span title={id} className="font-mono text-xs whitespace-nowrap">
        {shortId(id)}
      </span>
    </RowLink>
  ),
  state: batch => <BatchState batch={batch} />,
  requests: batch => <BatchProgress batch={batch} />,
  endpoint: { aside: true, show: 'endpoint' },
  model: { aside: true, show: ({ model }) => model ?? '–' },
  created: ({ created_at }) => <Time at={created_at} />,
})

/** The batches of the organization, newest first, live, with one of them beside the list. */
export default function BatchesPage() {
  const [params, change] = useAddress('push')
  const { can } = useSession()
  const after = params.get('after') ?? undefined
  const open = params.get('batch') ?? undefined
  const creating = params.get('create')
  const query = useAnswer(
    ['batches', 'list', after],
    () => api.GET('/std/v1/batches', { params: { query: { limit: 50, after } } }),
    {
      placeholderData: keepPreviousData,
      refetchInterval: ({ state: { data } }) => (data?.data.some(isLive) ? liveMs : false),
    },
  )
  useLiveRefresh(['batch.'], ['batches'])
  const mayCreate = can('user:write')
  const create = <Button primary icon={Plus} onClick={() => change({ create: 'new' })} label={text.create} />
  return (
    <>
      <PageHeading title={shellText.pages.batches} about={text.about} actions={mayCreate && create} />
      <WithPanel
        panel={open !== undefined && <BatchPanel key={open} id={open} close={() => change({ batch: undefined })} />}
      >
        <Queried query={query} lines={5}>
          {({ data, has_more, last_id }) => (
            <PanelTable
              label={text.list}
              param="batch"
              columns={columns}
              rows={data}
              next={has_more ? last_id : null}
              names={text}
            >
              <Empty title={text.none}>
                <p>{text.noneHelp}</p>
                {mayCreate && create}
                <GuideLink guide="batches" label={text.guide} />
              </Empty>
            </PanelTable>
          )}
        </Queried>
      </WithPanel>
      {mayCreate && creating !== null && (
        <CreateBatch
          stored={creating === 'new' ? undefined : creating}
          created={batch => change({ batch, create: undefined, after: undefined })}
          close={() => change({ create: undefined })}
        />
      )}
    </>
  )
}
