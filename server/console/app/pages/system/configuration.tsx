import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { api, dataOf, type Schema } from '../../api/client.ts'
import { Badge } from '../../components/badge.tsx'
import { Checkbox } from '../../components/choice.tsx'
import { CodeWords } from '../../components/code-words.tsx'
import { Empty, Section } from '../../components/page-heading.tsx'
import { Queried } from '../../components/queried.tsx'
import { SearchField } from '../../components/search-field.tsx'
import { type Column, Table } from '../../components/table.tsx'
import { systemText } from '../../text/system.ts'

type Config = Schema<'SystemConfig'>
type Value = Config['values'][number]
type Variable = Config['environment'][number]
const { columns: names, variableColumns } = systemText

const code = (text: string) => <code className="font-mono break-all">{text}</code>

const columns: readonly Column<Value>[] = [
  { name: names.key, show: ({ key }) => code(key) },
  {
    name: names.value,
    show: ({ value, absent }) => (value === null ? <span className="text-muted">{absent}</span> : code(value)),
  },
  {
    name: names.source,
    show: ({ source, restart_needed: isPending }) => (
      <>
        <Badge kind={source === 'default' ? 'plain' : 'active'}>{systemText.sources[source]}</Badge>
        {isPending && <span className="text-warning mt-1 block text-xs">{systemText.restart}</span>}
      </>
    ),
  },
  {
    name: names.meaning,
    show: ({ meaning }) => (
      <span className="text-muted text-xs">
        <CodeWords>{meaning}</CodeWords>
      </span>
    ),
  },
]

const variables: readonly Column<Variable>[] = [
  { name: variableColumns.name, show: ({ name }) => code(name) },
  {
    name: variableColumns.value,
    show: ({ value, is_set: isSet, default: without }) =>
      value !== null ? (
        code(value)
      ) : (
        <span className="text-muted">{isSet ? systemText.hidden : systemText.notSet(without)}</span>
      ),
  },
  { name: variableColumns.meaning, show: ({ meaning }) => <span className="text-muted text-xs">{meaning}</span> },
]

/** The settings in force, by section, with where each comes from. */
export function Configuration() {
  const query = useQuery({
    queryKey: ['system', 'config'],
    queryFn: () => dataOf(api.GET('/api/system/config')),
  })
  const [search, setSearch] = useState('')
  const [onlyChanged, setOnlyChanged] = useState(false)
  const words = search.trim().toLowerCase()
  const matches = (...texts: string[]) => texts.some(text => text.toLowerCase().includes(words))
  return (
    <Queried query={query} lines={8}>
      {({ path, exists, values, environment }) => {
        const found = values.filter(
          ({ key, meaning, source, restart_needed: isPending }) =>
            matches(key, meaning) && (!onlyChanged || source !== 'default' || isPending),
        )
        const set = environment.filter(
          ({ name, meaning, is_set: isSet }) => matches(name, meaning) && (!onlyChanged || isSet),
        )
        return (
          <>
            <p className="mb-3 break-words">
              {exists ? systemText.file(path) : systemText.noFile(path)}{' '}
              <span className="text-muted">{systemText.edit}</span>
            </p>
            <div className="mb-4 flex flex-wrap items-center gap-3">
              <SearchField value={search} change={setSearch} label={systemText.search} />
              <Checkbox
                label={systemText.onlyChanged}
                checked={onlyChanged}
                onChange={event => setOnlyChanged(event.target.checked)}
              />
            </div>
            {found.length + set.length === 0 && <Empty title={systemText.noMatch}>{systemText.noMatchNext}</Empty>}
            {[...new Set(found.map(({ section }) => section))].map(section => (
              <Section key={section} title={section}>
                <Table
                  label={section}
                  columns={columns}
                  rows={found.filter(one => one.section === section)}
                  rowKey={({ key }) => key}
                />
              </Section>
            ))}
            {set.length > 0 && (
              <Section title={systemText.environment}>
                <Table label={systemText.environment} columns={variables} rows={set} rowKey={({ name }) => name} />
              </Section>
            )}
          </>
        )
      }}
    </Queried>
  )
}
