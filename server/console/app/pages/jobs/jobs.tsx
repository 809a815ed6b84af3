import { PageHeading } from '../../components/page-heading.tsx'
import { shellText } from '../../text/shell.ts'

export default function Jobs() {
  return <PageHeading title={shellText.pages.jobs} />
}
