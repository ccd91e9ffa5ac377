#include "conformance/cases/rows.h"

cf_topic cf_topic_custom = {"custom", __FILE__, NULL, 0};
