import { api, type Schema } from '../../api/client.ts'
import { useAnswer } from '../../api/queries.ts'
import { Badge } from '../../components/badge.tsx'
import { CodeBlock } from '../../components/code.tsx'
import { durationText, sizeText } from '../../components/format.ts'
import { Empty, Queried, Section } from '../../components/page.tsx'
import { type Column, Table } from '../../components/table.tsx'
import { Time } from '../../components/time.tsx'
import { modelsText, modelText } from '../../text/models.ts'
import { shellCommand } from './model-texts.ts'

type Engine = Schema<'ModelEngine'>
const { engineColumns: names } = modelsText
const kinds = { starting: 'active', ready: 'good', stopping: 'plain' } as const

const columns: readonly Column<Engine>[] = [
  {
    name: names.state,
    show: ({ state }) => <Badge kind={kinds[state]}>{modelsText.engineStates[state]}</Badge>,
  },
  { name: names.process, show: ({ pid }) => pid ?? modelsText.remote },
  { name: names.devices, show: ({ devices }) => devices.join(', ') || '–' },
  { name: names.memory, number: true, show: ({ memory_bytes: bytes }) => sizeText(bytes) },
  { name: names.slots, show: ({ busy, slots }) => modelText.busy(busy, slots) },
  { name: names.started, show: ({ started_at: at }) => <Time at={at} /> },
  { name: names.used, show: ({ last_used_at: at }) => <Time at={at} /> },
]

/** The settings and engines of a model, which the owner of the machine may read. */
export const useModelDetail = (id: string) =>
  useAnswer(['models', 'detail', id], () => api.GET('/api/models/{id}', { params: { path: { id } } }), {
    refetchInterval: 3_000,
  })

/** The engines of a model that run, with their commands, and its newest loads. */
export function Engines({ id }: { id: string }) {
  const query = useModelDetail(id)
  return (
    <>
      <Section title={modelsText.engines}>
        <Queried query={query}>
          {({ engines }) =>
            engines.length === 0 ? (
              <Empty title={modelsText.noEngines}>{modelsText.noEnginesNext}</Empty>
            ) : (
              <div className="space-y-3">
                <Table
                  label={modelsText.engines}
                  columns={columns}
                  rows={engines}
                  rowKey={({ id: engine }) => engine}
                />
                {engines
                  .filter(({ command }) => command.length > 0)
                  .map(({ id: engine, command }) => (
                    <CodeBlock key={engine} label={modelsText.command} code={shellCommand(command)} />
                  ))}
              </div>
            )
          }
        </Queried>
      </Section>
      <Loads loads={query.data?.loads ?? []} />
    </>
  )
}

type EngineLoad = Schema<'EngineLoad'>
const { loadColumns: loadNames } = modelsText
const loadKinds = { loading: 'active', ready: 'good', failed: 'bad', ended: 'plain' } as const

const loadColumns: readonly Column<EngineLoad>[] = [
  { name: loadNames.when, show: ({ started_at: at }) => <Time at={at} /> },
  { name: loadNames.state, show: ({ state }) => <Badge kind={loadKinds[state]}>{modelsText.loadStates[state]}</Badge> },
  { name: loadNames.took, number: true, show: ({ load_ms: ms }) => (ms === null ? '–' : durationText(ms)) },
  { name: loadNames.devices, wideOnly: true, show: ({ devices }) => devices.join(', ') || '–' },
  { name: loadNames.ran, show: ({ ended_at: at }) => (at === null ? '–' : <Time at={at} />) },
  { name: loadNames.reason, show: ({ reason }) => reason ?? '–' },
]

/** When the model was loaded, how long it took, and why its engines ended. */
function Loads({ loads }: { loads: readonly EngineLoad[] }) {
  if (loads.length === 0) return null
  return (
    <Section title={modelsText.loads}>
      <p className="text-muted mb-2">{modelsText.loadsAbout}</p>
      <Table label={modelsText.loads} columns={loadColumns} rows={loads} rowKey={({ engine_id: id }) => id} />
    </Section>
  )
}
