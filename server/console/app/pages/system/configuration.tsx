import { type ReactNode, useState } from 'react'
import { api, type Schema, useAnswer } from '../../api/client.ts'
import { Badge } from '../../components/badge.tsx'
import { CodeWords } from '../../components/code.tsx'
import { Checkbox, SearchField } from '../../components/fields.tsx'
import { Empty, Queried, Section } from '../../components/page.tsx'
import { systemText } from '../../text/system.ts'

type Config = Schema<'SystemConfig'>
type Value = Config['values'][number]
type Variable = Config['environment'][number]

interface RowProps {
  name: string
  value: ReactNode
  badge?: ReactNode
  children: string
}

/** A setting or variable: its name and value, and below what it means. */
const Row = ({ name, value, badge, children }: RowProps) => (
  <li className="px-3 py-2">
    <div className="grid gap-x-4 gap-y-0.5 md:grid-cols-[20rem_1fr_auto]">
      <span className="font-mono break-words">{name}</span>
      <span className="min-w-0 break-words">{value}</span>
      {badge && <span>{badge}</span>}
    </div>
    <p className="text-muted mt-1 text-xs">
      <CodeWords>{children}</CodeWords>
    </p>
  </li>
)

const SettingRow = ({ setting }: { setting: Value }) => {
  const { key, value, absent, meaning, source, restart_needed: isPending } = setting
  return (
    <Row
      name={key}
      value={
        <>
          {value === null ? (
            <span className="text-muted">
              <CodeWords>{absent ?? '–'}</CodeWords>
            </span>
          ) : (
            <span className="font-mono">{value}</span>
          )}
          {isPending && <span className="text-warning block text-xs">{systemText.restart}</span>}
        </>
      }
      badge={<Badge kind={source === 'default' ? 'plain' : 'active'}>{systemText.sources[source]}</Badge>}
    >
      {meaning}
    </Row>
  )
}

const VariableRow = ({
  variable: { name, value, is_set: isSet, default: without, meaning },
}: {
  variable: Variable
}) => (
  <Row
    name={name}
    value={
      value === null ? (
        <span className="text-muted">{isSet ? systemText.hidden : systemText.notSet(without)}</span>
      ) : (
        <span className="font-mono">{value}</span>
      )
    }
  >
    {meaning}
  </Row>
)

const listClass = 'border-line bg-surface divide-line divide-y rounded-lg border'

/** The settings in force, by section, with where each comes from. */
export function Configuration() {
  const query = useAnswer(['system', 'config'], () => api.GET('/api/system/config'))
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
              <Checkbox label={systemText.onlyChanged} checked={onlyChanged} change={setOnlyChanged} />
            </div>
            {found.length + set.length === 0 && <Empty title={systemText.noMatch}>{systemText.noMatchNext}</Empty>}
            {[...new Set(found.map(({ section }) => section))].map(section => (
              <Section key={section} title={section}>
                <ul className={listClass}>
                  {found
                    .filter(one => one.section === section)
                    .map(one => (
                      <SettingRow key={one.key} setting={one} />
                    ))}
                </ul>
              </Section>
            ))}
            {set.length > 0 && (
              <Section title={systemText.environment}>
                <ul className={listClass}>
                  {set.map(one => (
                    <VariableRow key={one.name} variable={one} />
                  ))}
                </ul>
              </Section>
            )}
          </>
        )
      }}
    </Queried>
  )
}
