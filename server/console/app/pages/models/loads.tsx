import type { Schema } from '../../api/client.ts'
import { Badge } from '../../components/badge.tsx'
import { durationText } from '../../components/format.ts'
import { Section } from '../../components/page.tsx'
import { type Column, Table } from '../../components/table.tsx'
import { Time } from '../../components/time.tsx'
import { modelsText } from '../../text/models.ts'

type EngineLoad = Schema<'EngineLoad'>
const { loadColumns: names } = modelsText
const kinds = { loading: 'active', ready: 'good', failed: 'bad', ended: 'plain' } as const

const columns: readonly Column<EngineLoad>[] = [
  { name: names.when, show: ({ started_at: at }) => <Time at={at} /> },
  { name: names.state, show: ({ state }) => <Badge kind={kinds[state]}>{modelsText.loadStates[state]}</Badge> },
  { name: names.took, number: true, show: ({ load_ms: ms }) => (ms === null ? '–' : durationText(ms)) },
  { name: names.devices, wideOnly: true, show: ({ devices }) => devices.join(', ') || '–' },
  { name: names.ran, show: ({ ended_at: at }) => (at === null ? '–' : <Time at={at} />) },
  { name: names.reason, show: ({ reason }) => reason ?? '–' },
]

/** When the model was loaded, how long it took, and why its engines ended. */
export function Loads({ loads }: { loads: readonly EngineLoad[] }) {
  if (loads.length === 0) return null
  return (
    <Section title={modelsText.loads}>
      <p className="text-muted mb-2">{modelsText.loadsAbout}</p>
      <Table label={modelsText.loads} columns={columns} rows={loads} rowKey={({ engine_id: id }) => id} />
    </Section>
  )
}
