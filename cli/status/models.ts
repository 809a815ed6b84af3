import type { Api } from '../client/client.ts'
import { rateText } from '../terminal/quantities-text.ts'
import { cutLine, lineWidth, type Paint, padded, type Span, type StyledLine } from '../terminal/styled-line.ts'

interface Column {
  head: string
  side: 'left' | 'right'
  of: (model: Api['ModelLoad']) => string
  look?: (model: Api['ModelLoad']) => keyof Paint | undefined
}

const looks: Record<string, keyof Paint> = { warm: 'good', loading: 'warning', unavailable: 'bad' }
const none = '-'

/** In the order in which they get space. */
const columns = {
  model: { head: 'model', side: 'left', of: model => model.model_id },
  status: { head: 'status', side: 'left', of: model => model.status, look: model => looks[model.status] ?? 'faint' },
  slots: {
    head: 'busy',
    side: 'right',
    of: ({ slots, busy }) => (slots > 0 ? `${busy}/${slots}` : none),
  },
  waiting: {
    head: 'waiting',
    side: 'right',
    of: ({ waiting }) => String(waiting),
    look: ({ waiting }) => (waiting > 0 ? 'warning' : undefined),
  },
  output: {
    head: 'tokens/s',
    side: 'right',
    of: model => (model.slots > 0 ? rateText(model.output_tokens_per_second) : none),
  },
  input: {
    head: 'prompt/s',
    side: 'right',
    of: model => (model.slots > 0 ? rateText(model.input_tokens_per_second) : none),
  },
  first: { head: 'first token', side: 'right', of: model => timeText(model.time_to_first_token_ms) },
  gap: { head: 'a token', side: 'right', of: model => timeText(model.inter_token_latency_ms) },
  queue: { head: 'queued', side: 'right', of: model => timeText(model.queue_wait_ms) },
  waits: {
    head: 'waited (strict order)',
    side: 'right',
    of: ({ waits }) => (waits ? `${timeText(waits.queue_ms)} (${timeText(waits.reference_queue_ms)})` : none),
  },
  load: { head: 'load', side: 'right', of: model => timeText(model.load_ms) },
  region: { head: 'region', side: 'left', of: ({ region }) => region ?? none },
  note: { head: 'note', side: 'left', of: noteOf, look: ({ status }) => (status === 'unavailable' ? 'bad' : 'faint') },
} satisfies Record<string, Column>

const rank: Record<string, number> = { warm: 0, loading: 0, unavailable: 1, cold: 2, disabled: 3 }

/** Draws the models as a table: active models first, with as many columns as fit. */
export function modelLines(models: readonly Api['ModelLoad'][], width: number): StyledLine[] {
  const sorted = models.toSorted((one, other) => (rank[one.status] ?? 2) - (rank[other.status] ?? 2))
  const chosen: { column: Column; width: number }[] = []
  let room = width
  for (const [name, column] of Object.entries<Column>(columns)) {
    if ((column.side === 'right' || name === 'region') && sorted.every(model => column.of(model) === none)) continue
    const longest = Math.max(lineWidth(column.head), ...sorted.map(model => lineWidth(column.of(model))))
    const desired = name === 'model' ? Math.min(longest, Math.max(12, Math.floor(width / 2))) : longest
    const gap = chosen.length > 0 ? 2 : 0
    // Text may be cut, numbers not. An empty note column is left out.
    const cells = name === 'note' || name === 'status' ? Math.min(desired, room - gap) : desired
    if (cells < 4 || cells + gap > room) break
    if (name === 'note' && (cells < 12 || sorted.every(model => noteOf(model) === ''))) break
    chosen.push({ column, width: cells })
    room -= cells + gap
  }
  const noted = chosen.some(({ column }) => column.head === columns.note.head)
  const row = (cell: (column: Column) => Span): StyledLine =>
    chosen.flatMap(({ column, width: cells }, at) => {
      const span = cell(column)
      const last = at === chosen.length - 1 && column.side === 'left'
      const shown = last ? cutLine(span.text, cells) : padded(span.text, cells, column.side)
      return [...(at > 0 ? [{ text: '  ' }] : []), { ...span, text: shown }]
    })
  return [
    row(column => ({ text: column.head, look: 'faint' })),
    ...sorted.flatMap(model => {
      const own = row(column => {
        const look = column.look?.(model)
        return { text: column.of(model), ...(look ? { look } : {}) }
      })
      // The reason why a model does not work always has space: without a column it gets its own line.
      const note = noted ? '' : noteOf(model)
      return note === '' ? [own] : [own, [{ text: `  ${note}`, look: columns.note.look(model) }] satisfies StyledLine]
    }),
  ]
}

/** Formats an average duration: `3.2 ms`, `120 ms`, `4.1 s`. */
const timeText = (ms: number | null | undefined): string =>
  ms == null
    ? none
    : ms < 10
      ? `${ms.toFixed(1)} ms`
      : ms < 1000
        ? `${Math.round(ms)} ms`
        : `${(ms / 1000).toFixed(1)} s`

function noteOf({ reason, eta_seconds, status }: Api['ModelLoad']): string {
  if (reason !== null) return reason
  return status === 'loading' && eta_seconds !== null ? `about ${eta_seconds} s left` : ''
}
