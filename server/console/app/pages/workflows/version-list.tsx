import { useInfiniteQuery, useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { Link } from 'wouter'
import { api, dataOf, useSession } from '../../api/client.ts'
import { useAnnounce } from '../../components/announcements.tsx'
import { Badge } from '../../components/badge.tsx'
import { Button, buttonClass } from '../../components/button.tsx'
import { SelectField } from '../../components/fields.tsx'
import { Empty, PageHeading, Queried, Section, useBeginning } from '../../components/page.tsx'
import { Time } from '../../components/time.tsx'
import { workflowsText } from '../../text/workflows.ts'
import { sourceOf } from '../editor/document/source.ts'
import { compareLines, shownLines } from './compare-lines.ts'

const readVersion = (id: string, version: number) =>
  dataOf(api.GET('/api/workflows/{id}', { params: { path: { id }, query: { version } } }))

/** The versions of a workflow: compare two, restore one. */
export default function VersionList({ id }: { id: string }) {
  useBeginning()
  const query = useInfiniteQuery({
    queryKey: ['workflows', 'versions', id],
    initialPageParam: '',
    queryFn: ({ pageParam: after }) =>
      dataOf(
        api.GET('/api/workflows/{id}/versions', {
          params: { path: { id }, query: { limit: 100, ...(after ? { after } : {}) } },
        }),
      ),
    getNextPageParam: page => page.next_cursor ?? undefined,
  })
  return (
    <Queried query={query} lines={5}>
      {({ pages }) => {
        const versions = pages.flatMap(page => page.versions)
        return (
          <>
            <PageHeading
              title={workflowsText.versionsOf(versions[0]?.name ?? '')}
              actions={
                <Link href={`/workflows/${id}`} className={buttonClass()}>
                  {workflowsText.edit}
                </Link>
              }
            >
              <Link href="/workflows" className="text-accent underline">
                {workflowsText.back}
              </Link>
            </PageHeading>
            <Compare id={id} versions={versions} />
            {query.hasNextPage && (
              <Button busy={query.isFetchingNextPage} onClick={() => void query.fetchNextPage()}>
                {workflowsText.more}
              </Button>
            )}
          </>
        )
      }}
    </Queried>
  )
}

interface Version {
  version: number
  name: string
  created_at: number
}

function Compare({ id, versions }: { id: string; versions: readonly Version[] }) {
  const newest = versions[0]!.version
  const [older, setOlder] = useState(Math.max(1, newest - 1))
  const [newer, setNewer] = useState(newest)
  const queries = useQueryClient()
  const announce = useAnnounce()
  const { can } = useSession()
  const restore = useMutation({
    mutationFn: async (version: number) => {
      const { workflow } = await readVersion(id, version)
      const { name, description, region, timeout, on_failure, parameters, dag } = workflow
      const body = { name, description, region, timeout, on_failure, parameters, dag: dag! }
      return (await dataOf(api.PUT('/api/workflows/{id}', { params: { path: { id } }, body }))).workflow
    },
    onSuccess: (made, version) => {
      announce('good', workflowsText.restored(version, made.version))
      setOlder(newest)
      setNewer(made.version)
      return queries.invalidateQueries({ queryKey: ['workflows'] })
    },
    onError: failure => announce('bad', failure.message),
  })
  const options = versions.map(({ version }) => ({
    value: String(version),
    name: workflowsText.versionNumber(version),
  }))
  return (
    <div className="grid gap-6 lg:grid-cols-[20rem_1fr]">
      <Section title={workflowsText.versions}>
        <ul className="border-line bg-surface divide-line divide-y rounded-lg border">
          {versions.map(({ version, created_at }) => (
            <li key={version} className="flex flex-wrap items-center gap-2 px-3 py-2">
              <span className="font-medium">{workflowsText.versionNumber(version)}</span>
              <span className="text-muted flex-1 text-xs">
                <Time at={created_at} />
              </span>
              {version === newest ? (
                <Badge kind="good">{workflowsText.current}</Badge>
              ) : (
                can('user:write') && (
                  <Button
                    small
                    busy={restore.isPending}
                    aria-label={workflowsText.restoreOf(version)}
                    onClick={() => restore.mutate(version)}
                  >
                    {workflowsText.restore}
                  </Button>
                )
              )}
            </li>
          ))}
        </ul>
      </Section>
      {versions.length === 1 ? (
        <Empty title={workflowsText.onlyVersion}>{workflowsText.onlyVersionNext}</Empty>
      ) : (
        <Section title={workflowsText.compared(older, newer)}>
          <div className="mb-3 grid grid-cols-2 gap-3">
            <SelectField
              label={workflowsText.older}
              value={String(older)}
              options={options}
              onChange={event => setOlder(Number(event.target.value))}
            />
            <SelectField
              label={workflowsText.newer}
              value={String(newer)}
              options={options}
              onChange={event => setNewer(Number(event.target.value))}
            />
          </div>
          <Difference id={id} older={older} newer={newer} />
        </Section>
      )}
    </div>
  )
}

const looks = { same: '', added: 'bg-good-soft text-good', removed: 'bg-bad-soft text-bad' }
const signs = { same: ' ', added: '+', removed: '−' }

function Difference({ id, older, newer }: { id: string; older: number; newer: number }) {
  const query = useQuery({
    queryKey: ['workflows', 'compare', id, older, newer],
    // A stored version never changes.
    staleTime: Number.POSITIVE_INFINITY,
    queryFn: async () => {
      const [a, b] = await Promise.all([readVersion(id, older), readVersion(id, newer)])
      return shownLines(compareLines(sourceOf(a.workflow), sourceOf(b.workflow)))
    },
  })
  return (
    <Queried query={query} lines={8}>
      {lines =>
        lines.every(line => typeof line === 'number') ? (
          <p>{workflowsText.same}</p>
        ) : (
          <div
            // Focusable, so that it can be scrolled by keyboard.
            tabIndex={0}
            role="region"
            aria-label={workflowsText.compared(older, newer)}
            className="border-line bg-surface overflow-x-auto rounded-lg border py-2 font-mono text-xs"
          >
            {lines.map((line, at) =>
              typeof line === 'number' ? (
                // Lines have no other identity.
                <p key={at} className="text-muted bg-raised my-1 px-3 py-0.5">
                  {workflowsText.unchanged(line)}
                </p>
              ) : (
                // Lines have no other identity.
                <p key={at} className={`px-3 whitespace-pre ${looks[line.kind]}`}>
                  <span aria-hidden>{signs[line.kind]} </span>
                  {line.kind !== 'same' && <span className="sr-only">{workflowsText[line.kind]}: </span>}
                  {line.text}
                </p>
              ),
            )}
          </div>
        )
      }
    </Queried>
  )
}
