import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { send } from '../../api/client.ts'
import { Button } from '../../components/button.tsx'
import { SearchField } from '../../components/fields.tsx'
import { Empty, Queried } from '../../components/page.tsx'
import { shellText } from '../../text/shell.ts'
import { systemText } from '../../text/system.ts'
import { type Work, worksIn } from './works.ts'

const pageSize = 50

/** The works of others in the program, each with the text of its licence. */
export function Licenses() {
  const query = useQuery({
    queryKey: ['system', 'licenses'],
    queryFn: async () => worksIn(await (await send('/api/system/licenses')).text()),
    staleTime: Number.POSITIVE_INFINITY,
  })
  const [search, setSearch] = useState('')
  const [shown, setShown] = useState(pageSize)
  const words = search.trim().toLowerCase()
  return (
    <Queried query={query} lines={8}>
      {works => {
        const found = works.filter(({ name, license }) => `${name} ${license}`.toLowerCase().includes(words))
        return (
          <>
            <p className="text-muted mb-3">{systemText.licensesAbout(works.length)}</p>
            <div className="mb-3 flex">
              <SearchField value={search} change={setSearch} label={systemText.searchLicenses} />
            </div>
            {found.length === 0 ? (
              <Empty title={systemText.noWork}>{systemText.noWorkNext}</Empty>
            ) : (
              <ul className="border-line bg-surface divide-line mb-3 divide-y rounded-lg border">
                {found.slice(0, shown).map(work => (
                  <WorkRow key={work.name} work={work} />
                ))}
              </ul>
            )}
            {found.length > shown && <Button onClick={() => setShown(shown + pageSize)} label={shellText.more} />}
          </>
        )
      }}
    </Queried>
  )
}

function WorkRow({ work: { name, license, text } }: { work: Work }) {
  const [isOpen, setOpen] = useState(false)
  return (
    <li>
      <details onToggle={event => setOpen(event.currentTarget.open)}>
        <summary className="hover:bg-raised/50 px-3 py-2 break-words">
          {name} <span className="text-muted">{license}</span>
        </summary>
        {isOpen && (
          <pre
            tabIndex={0}
            aria-label={name}
            className="bg-raised max-h-96 overflow-auto p-3 text-xs whitespace-pre-wrap"
          >
            {text}
          </pre>
        )}
      </details>
    </li>
  )
}
