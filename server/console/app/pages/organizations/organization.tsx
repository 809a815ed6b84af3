import { useQueryClient } from '@tanstack/react-query'
import { ChartColumn } from 'lucide-react'
import { useState } from 'react'
import { Link } from 'wouter'
import { api, dataOf, type Schema, useSession } from '../../api/client.ts'
import { useAnswer } from '../../api/queries.ts'
import { useAction, useAnnounce } from '../../components/announcements.tsx'
import { Button, buttonClass } from '../../components/button.tsx'
import { Confirm } from '../../components/dialog.tsx'
import { Notice, PageHeading, Queried, useBeginning } from '../../components/page.tsx'
import { organizationsText as text } from '../../text/organizations.ts'
import { Tokens } from './tokens.tsx'

/** One organization with its tokens. */
export function OrganizationPage({ id }: { id: string }) {
  useBeginning()
  const query = useAnswer(['organizations', 'one', id], () =>
    api.GET('/api/organizations/{organization}', { params: { path: { organization: id } } }),
  )
  return (
    <Queried query={query} lines={6}>
      {({ organization }) => <Shown organization={organization} />}
    </Queried>
  )
}

function Shown({ organization }: { organization: Schema<'Organization'> }) {
  const { id, name, status } = organization
  const { session, can } = useSession()
  const queries = useQueryClient()
  const announce = useAnnounce()
  const [suspending, setSuspending] = useState(false)
  const params = { path: { organization: id } }
  const resume = useAction(
    () => dataOf(api.POST('/api/organizations/{organization}/resume', { params })),
    () => text.resumed(name),
    ['organizations'],
  )
  // The organization that owns the machine cannot be suspended.
  const mayEnd = session.owns_machine && can('admin:write') && id !== session.organization.id
  return (
    <>
      <PageHeading
        title={name}
        actions={
          <>
            <Link href={session.owns_machine ? `/usage?organization=${id}` : '/usage'} className={buttonClass()}>
              <ChartColumn aria-hidden className="size-4" />
              {text.usage}
            </Link>
            {mayEnd && status === 'active' && (
              <Button danger onClick={() => setSuspending(true)}>
                {text.suspend}
              </Button>
            )}
            {mayEnd && status === 'suspended' && (
              <Button busy={resume.isPending} onClick={() => resume.mutate()}>
                {text.resume}
              </Button>
            )}
          </>
        }
      >
        {text.plan} {organization.plan} · <code className="font-mono text-xs">{id}</code>
      </PageHeading>
      {status !== 'active' && (
        <Notice kind="warning" className="mb-4">
          {status === 'suspended' ? text.suspendedNotice : text.deletedNotice}
        </Notice>
      )}
      <Tokens organization={organization} />
      {suspending && (
        <Confirm
          title={text.suspendTitle(name)}
          action={text.suspend}
          close={() => setSuspending(false)}
          act={async () => {
            await dataOf(api.POST('/api/organizations/{organization}/suspend', { params }))
            void queries.invalidateQueries({ queryKey: ['organizations'] })
            announce('good', text.suspended(name))
          }}
        >
          {text.suspendText}
        </Confirm>
      )}
    </>
  )
}
