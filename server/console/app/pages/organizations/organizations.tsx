import { PageHeading } from '../../components/page-heading.tsx'
import { shellText } from '../../text/shell.ts'

export default function Organizations() {
  return <PageHeading title={shellText.pages.organizations} />
}
