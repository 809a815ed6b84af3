import { useMemo, useState } from 'react'
import { api, type Schema, useAnswer, useSession } from '../../api/client.ts'
import { Badge, type BadgeKind } from '../../components/badge.tsx'
import { Benchmark } from '../../components/benchmark.tsx'
import { Button } from '../../components/button.tsx'
import { Checkbox, SearchField } from '../../components/fields.tsx'
import { shortCountText } from '../../components/format.ts'
import { TaskLabels } from '../../components/marks.tsx'
import { Empty, Queried } from '../../components/page.tsx'
import { type Column, columnsOf, Table } from '../../components/table.tsx'
import { useSearch } from '../../components/use-address.ts'
import { modelsText } from '../../text/models.ts'
import { tasksText } from '../../text/tasks.ts'

type Entry = Schema<'ModelCatalog'>['models'][number]
const kinds: Readonly<Record<string, BadgeKind>> = {
  gpu: 'good',
  processor: 'good',
  setup: 'warning',
  split: 'warning',
  slow: 'warning',
  missing: 'warning',
  no: 'bad',
}
/** Grades of models that infer cannot run on this machine. */
const unfit = ['no', 'external']

/** The columns of the catalogue; actions only for whoever may add models. */
const columnsFor = (add: ((model: string) => void) | undefined): readonly Column<Entry>[] =>
  columnsOf(modelsText.catalogColumns, {
    model: ({ title, name, aliases, summary, parameters }) => (
      <>
        <span className="font-medium">{title}</span>
        <span className="text-muted block text-xs">
          {[name, ...aliases.map(modelsText.also)].join(', ')}
          {parameters === null ? '' : ` · ${modelsText.parameters(shortCountText(parameters))}`}
        </span>
        <span className="text-muted block max-w-md text-xs">{summary}</span>
      </>
    ),
    tasks: ({ tasks }) => <TaskLabels tasks={tasks} />,
    fit: ({ fit: { grade, text }, benchmark }) => (
      <>
        <Badge kind={kinds[grade] ?? 'plain'}>{modelsText.grades[grade] ?? modelsText.otherGrade}</Badge>
        <span className="text-muted mt-1 block max-w-xs text-xs">{text}</span>
        <Benchmark benchmark={benchmark} />
      </>
    ),
    license: { wideOnly: true, show: ({ license }) => <span className="text-xs">{license}</span> },
    actions:
      add &&
      (({ name, configured }) =>
        configured ? (
          <Badge kind="good">{modelsText.isConfigured}</Badge>
        ) : (
          <Button
            small
            aria-label={`${modelsText.addShort} ${name}`}
            onClick={() => add(name)}
            label={modelsText.addShort}
          />
        )),
  })

/** The catalogue, with how each model fits this machine. `add` begins to add one. */
export function CatalogList({ add }: { add: (model: string) => void }) {
  const { can } = useSession()
  const query = useAnswer(['models', 'catalog'], () => api.GET('/api/model-catalog'), { staleTime: 60_000 })
  const [search, setSearch] = useSearch()
  const [onlyFitting, setOnlyFitting] = useState(true)
  const words = search.trim().toLowerCase()
  const mayAdd = can('admin:write')
  const columns = useMemo(() => columnsFor(mayAdd ? add : undefined), [mayAdd, add])
  return (
    <>
      <p className="text-muted mb-3">{modelsText.catalogAbout}</p>
      <div className="mb-3 flex flex-wrap items-center gap-3">
        <SearchField value={search} change={setSearch} label={modelsText.searchCatalog} />
        <Checkbox label={modelsText.onlyFitting} checked={onlyFitting} change={setOnlyFitting} />
      </div>
      <Queried query={query} lines={8}>
        {({ models }) => {
          const found = models.filter(
            ({ title, name, aliases, summary, tasks, fit }) =>
              `${title} ${name} ${aliases.join(' ')} ${summary} ${tasksText(tasks)}`.toLowerCase().includes(words) &&
              (!onlyFitting || !unfit.includes(fit.grade)),
          )
          return found.length === 0 ? (
            <Empty title={modelsText.noEntry}>{modelsText.noEntryNext}</Empty>
          ) : (
            <Table label={modelsText.catalog} columns={columns} rows={found} rowKey="name" />
          )
        }}
      </Queried>
    </>
  )
}
