import { useState } from 'react'
import { api, type Schema, useAnswer, useSession } from '../../api/client.ts'
import { Badge } from '../../components/badge.tsx'
import { Button } from '../../components/button.tsx'
import { sizeText } from '../../components/format.ts'
import { TaskLabels } from '../../components/marks.tsx'
import { Notice, PageHeading, Queried, Section } from '../../components/page.tsx'
import { columnsOf, Table } from '../../components/table.tsx'
import { enginesText as text } from '../../text/engines.ts'
import { shellText } from '../../text/shell.ts'
import { GpuSetup } from '../overview/gpu-setup.tsx'
import { AcceptSetup, SetupRuns } from './setups.tsx'

type List = Schema<'EngineList'>
type Engine = List['engines'][number]
type Setup = List['setups'][number]

const kinds = { built_in: 'good', installed: 'good', missing: 'plain' } as const

/** The engines of the machine: what they are, what they can run, and how to install those that are missing. */
export default function EnginesPage() {
  const { session } = useSession()
  return (
    <>
      <PageHeading title={shellText.pages.engines} about={text.about} />
      {session.owns_machine ? <Engines /> : <Notice kind="info">{text.ownOnly}</Notice>}
    </>
  )
}

function Engines() {
  const query = useAnswer(['engines', 'list'], () => api.GET('/api/engines'), {
    refetchInterval: ({ state: { data } }) =>
      data?.setups.some(({ run }) => run?.status === 'running') ? 1_000 : 60_000,
  })
  const [asked, setAsked] = useState<Setup>()
  return (
    <>
      <GpuSetup />
      <Queried query={query} lines={8}>
        {({ engines, setups }) => (
          <>
            <SetupRuns setups={setups} />
            <Table label={text.engines} columns={columnsFor(setups, setAsked)} rows={engines} rowKey="engine" />
            <Versions setups={setups} />
          </>
        )}
      </Queried>
      {asked && <AcceptSetup setup={asked} close={() => setAsked(undefined)} />}
    </>
  )
}

/** Every installed version, also those that no model uses without naming it. */
function Versions({ setups }: { setups: readonly Setup[] }) {
  const rows = setups.flatMap(({ name, versions }) => versions.map(one => ({ ...one, name })))
  if (rows.length === 0) return null
  return (
    <Section title={text.versions}>
      <Table label={text.versions} columns={versionColumns} rows={rows} rowKey="path" />
    </Section>
  )
}

const versionColumns = columnsOf<Setup['versions'][number] & { name: string }, keyof typeof text.versionColumns>(
  text.versionColumns,
  {
    name: ({ name }) => <span className="font-medium">{name}</span>,
    version: ({ version }) => version ?? '–',
    state: ({ is_current: isCurrent, state }) => (
      <>
        <Badge kind={isCurrent ? 'good' : 'plain'}>{isCurrent ? text.current : text.beside}</Badge>
        {state !== 'complete' && <span className="text-muted block text-xs">{text.versionStates[state]}</span>}
      </>
    ),
    size: ({ bytes }) => sizeText(bytes),
    path: ({ path }) => <span className="text-xs break-all">{path}</span>,
  },
)

const columnsFor = (setups: readonly Setup[], ask: (setup: Setup) => void) =>
  columnsOf<Engine, keyof typeof text.columns>(text.columns, {
    engine: ({ engine, version }) => (
      <>
        <span className="font-medium">{engine}</span>
        {version !== null && <span className="text-muted block text-xs">{version}</span>}
      </>
    ),
    state: ({ state }) => <Badge kind={kinds[state]}>{text.states[state]}</Badge>,
    where: ({ origin, path }) => (
      <>
        {origin === null ? '–' : text.origins[origin]}
        {path !== null && <span className="text-muted block text-xs break-all">{path}</span>}
      </>
    ),
    runs: ({ tasks, runs_on: where }) => (
      <>
        <TaskLabels tasks={tasks} />
        <span className="text-muted block text-xs">{text.runsOn[where]}</span>
      </>
    ),
    next: engine => <Next engine={engine} setups={setups} ask={ask} />,
  })

/** What to do about an engine: a button where infer installs it, else the sentence. */
function Next({ engine, setups, ask }: { engine: Engine; setups: readonly Setup[]; ask: (setup: Setup) => void }) {
  const { can } = useSession()
  const { blocked, advice, setups: names } = engine
  if (blocked !== null) return <span className="text-muted">{blocked}</span>
  const offered = can('admin:write')
    ? setups.filter(({ name, state }) => names.includes(name) && state !== 'complete')
    : []
  const isBusy = setups.some(({ run }) => run?.status === 'running')
  if (offered.length === 0) return <span className="text-muted">{advice ?? text.nothingToDo}</span>
  return (
    <span className="flex flex-wrap gap-2 max-md:justify-end">
      {offered.map(setup => (
        <Button
          key={setup.name}
          small
          disabled={isBusy}
          onClick={() => ask(setup)}
          label={labels[setup.state](setup.name)}
        />
      ))}
    </span>
  )
}

const labels = {
  missing: text.installOf,
  complete: text.installOf,
  outdated: text.updateOf,
  incomplete: text.continueOf,
}
