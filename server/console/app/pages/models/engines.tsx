import { useQuery } from '@tanstack/react-query'
import { api, dataOf, type Schema } from '../../api/client.ts'
import { Badge } from '../../components/badge.tsx'
import { CodeBlock } from '../../components/code.tsx'
import { sizeText } from '../../components/format.ts'
import { Empty, Queried, Section } from '../../components/page.tsx'
import { type Column, Table } from '../../components/table.tsx'
import { Time } from '../../components/time.tsx'
import { modelsText, modelText } from '../../text/models.ts'
import { Loads } from './loads.tsx'
import { shellCommand } from './shell-command.ts'

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
  useQuery({
    queryKey: ['models', 'detail', id],
    queryFn: () => dataOf(api.GET('/api/models/{id}', { params: { path: { id } } })),
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
