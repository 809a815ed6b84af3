import { Link } from 'wouter'
import type { Schema } from '../../api/client.ts'
import { durationText } from '../../components/format.ts'
import { ModelActions, ModelLink, ModelStateView } from '../../components/model.tsx'
import { Empty } from '../../components/page.tsx'
import { type Column, Table } from '../../components/table.tsx'
import { modelText } from '../../text/models.ts'
import { overviewText } from '../../text/overview.ts'

type Load = Schema<'ModelLoad'>
const { columns: names } = overviewText

function Queue({ waiting, interactive, waiting_for: first }: Load) {
  if (waiting === 0) return <span className="text-muted">{overviewText.nothingWaits}</span>
  return (
    <>
      {overviewText.waiting(waiting, interactive)}
      {first && (
        <span className="text-muted block max-w-md text-xs">
          {first.detail}
          {first.eta_seconds !== null && first.eta_seconds > 0
            ? ` ${modelText.expected(durationText(first.eta_seconds * 1_000))}`
            : ''}
        </span>
      )}
    </>
  )
}

const rate = new Intl.NumberFormat('en', { maximumFractionDigits: 1 })

const columns: readonly Column<Load>[] = [
  { name: names.model, show: ({ model_id: id }) => <ModelLink id={id} /> },
  { name: names.state, show: ModelStateView },
  {
    name: names.slots,
    show: ({ busy, slots }) =>
      slots === 0 ? (
        <span className="text-muted">{modelText.noSlots}</span>
      ) : (
        <span className="whitespace-nowrap">{modelText.busy(busy, slots)}</span>
      ),
  },
  { name: names.queue, show: Queue },
  {
    name: names.speed,
    number: true,
    wideOnly: true,
    show: ({ slots, output_tokens_per_second: speed }) => (slots === 0 ? '–' : rate.format(speed)),
  },
  {
    name: names.firstToken,
    number: true,
    wideOnly: true,
    show: ({ time_to_first_token_ms: ms }) => (ms === null ? '–' : durationText(ms)),
  },
  { name: names.actions, show: ({ model_id: id, status }) => <ModelActions id={id} status={status} /> },
]

/** Models with state, slots, and what waits for them and why. */
export function ModelQueues({ models }: { models: readonly Load[] }) {
  if (models.length === 0)
    return (
      <Empty title={overviewText.noModels}>
        {overviewText.noModelsNext}
        <Link href="/models" className="text-accent hover:underline">
          {overviewText.addModel}
        </Link>
      </Empty>
    )
  return <Table label={overviewText.models} columns={columns} rows={models} rowKey={({ model_id: id }) => id} />
}
